#include <algorithm>
#include <utility>

#include "backends/native/conv_blocking.h"
#include "backends/native/conv_grouped.h"
#include "backends/native/row_space.h"
#include "base/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/native/conv_grouped_weights.cpp"
#include "base/simd_targets.h"
// The targets come first.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/native/conv_spread-inl.h"

#ifndef RIDGELINE_NATIVE_CONV_GROUPED_WEIGHTS_JOB
#define RIDGELINE_NATIVE_CONV_GROUPED_WEIGHTS_JOB
namespace ridgeline::native::conv {

struct GroupedWeightsJob {
  const GroupedWeightsPlan* plan = nullptr;
  SrcLayout layout;
  const float* src = nullptr;
  const float* diff_dst = nullptr;
  Strides src_strides{}, dst_strides{};
  std::int32_t* places = nullptr;  // of full blocks, then of the last
  float* partials = nullptr;       // [part][block][segment][src channel][tap][lane]
  float* buffers = nullptr;
};

}  // namespace ridgeline::native::conv
#endif

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native::conv::HWY_NAMESPACE {
namespace {

// One block of dst channels over a band.
struct BlockCall {
  const float* src = nullptr;       // of the band, at the block's first src channel
  const float* diff_dst = nullptr;  // of the band, at the block
  const Band* band = nullptr;
  std::int64_t used = 0;  // lanes
};

// Numbers of src that are worked on at once: their sums, and with step 1 the src of all taps, stay
// in registers.
inline constexpr int kNumbers = native::HWY_NAMESPACE::kManyRegisters ? 4 : 2;

template <class Body>
HWY_INLINE void for_each_row(const GroupedWeightsJob& job, const BlockCall& call,
                             const Segment& segment, const Body& body) {
  const Geometry& g = job.plan->geometry;
  const float* src = call.src + job.layout.tap_offset(segment.first);
  for (std::int64_t image = 0; image < call.band->images; ++image) {
    for (std::int64_t row = 0; row < call.band->rows; ++row) {
      body(src + image * job.layout.image_pitch + row * g.src_step_y * job.layout.row_pitch,
           call.diff_dst + image * job.dst_strides[0] + row * job.dst_strides[2]);
    }
  }
}

// The gradients of kTaps neighbouring taps for src channels [first, first + kCount) of each group.
// kSlide: the step is 1, so that what one column reads the next ones read too.
template <int kTaps, int kCount, bool kSlide, class Lanes, class Spread>
HWY_INLINE void sum_segment(const GroupedWeightsJob& job, const BlockCall& call, Lanes lanes,
                            const Spread& spread, const Segment& segment, std::int64_t first,
                            float* partial) {
  const FloatTag d;
  const Geometry& g = job.plan->geometry;
  const std::int64_t pitch = job.layout.pixel_pitch, step = g.src_step_x * pitch;
  const std::int64_t dst_step = job.dst_strides[3];
  FloatVec sums[kTaps][kCount];
#pragma GCC unroll 3
  for (int t = 0; t < kTaps; ++t) {
#pragma GCC unroll 4
    for (int i = 0; i < kCount; ++i) sums[t][i] = hn::Zero(d);
  }
  decltype(spread.at(0)) numbers[kCount];
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i) numbers[i] = spread.at(first + i);
  for_each_row(job, call, segment, [&](const float* src, const float* diff_dst) HWY_ATTR {
    FloatVec x[kTaps][kCount];
    if constexpr (kSlide) {
#pragma GCC unroll 3
      for (int t = 0; t + 1 < kTaps; ++t) {
#pragma GCC unroll 4
        for (int i = 0; i < kCount; ++i) x[t + 1][i] = numbers[i].load(src + t * pitch);
      }
    }
    for (std::int64_t col = 0; col < g.cols; ++col) {
      const FloatVec diff = lanes.load(diff_dst + col * dst_step);
#pragma GCC unroll 3
      for (int t = 0; t < kTaps; ++t) {
#pragma GCC unroll 4
        for (int i = 0; i < kCount; ++i) {
          if constexpr (kSlide) {
            if (t + 1 < kTaps) {
              x[t][i] = x[t + 1][i];
            } else {
              x[t][i] = numbers[i].load(src + col * pitch + t * pitch);
            }
          } else {
            x[t][i] = numbers[i].load(src + col * step + t * pitch);
          }
          sums[t][i] = hn::MulAdd(diff, x[t][i], sums[t][i]);
        }
      }
    }
  });
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i) {
#pragma GCC unroll 3
    for (int t = 0; t < kTaps; ++t) {
      float* to = partial + ((first + i) * kTaps + t) * kLanes;
      hn::StoreU(hn::Add(sums[t][i], hn::LoadU(d, to)), d, to);
    }
  }
}

template <int kTaps, bool kSlide, class Lanes, class Spread>
HWY_NOINLINE void sum_numbers(const GroupedWeightsJob& job, const BlockCall& call, Lanes lanes,
                              const Spread& spread, const Segment& segment, float* partial) {
  const std::int64_t numbers = job.plan->geometry.src_group();
  std::int64_t i = 0;
  for (; i + kNumbers <= numbers; i += kNumbers) {
    sum_segment<kTaps, kNumbers, kSlide>(job, call, lanes, spread, segment, i, partial);
  }
  for (; i < numbers; ++i) {
    sum_segment<kTaps, 1, kSlide>(job, call, lanes, spread, segment, i, partial);
  }
}

template <class Lanes, class Spread>
void sum_block(const GroupedWeightsJob& job, const BlockCall& call, Lanes lanes,
               const Spread& spread, float* partial) {
  const GroupedWeightsPlan& plan = *job.plan;
  const bool slide = plan.geometry.src_step_x == 1;
  for (const Segment& segment : plan.segments) {
    if (segment.taps == 3 && slide) {
      sum_numbers<3, true>(job, call, lanes, spread, segment, partial);
    } else if (segment.taps == 3) {
      sum_numbers<3, false>(job, call, lanes, spread, segment, partial);
    } else if (segment.taps == 2) {
      sum_numbers<2, true>(job, call, lanes, spread, segment, partial);
    } else {
      sum_numbers<1, false>(job, call, lanes, spread, segment, partial);
    }
    partial += plan.geometry.src_group() * segment.taps * kLanes;
  }
}

// The bands of one part of the pixels.
void run_part(const GroupedWeightsJob& job, int part) {
  const GroupedWeightsPlan& plan = *job.plan;
  const Geometry& g = plan.geometry;
  const LaneBlocks& blocks = plan.blocks;
  float* const partials = job.partials + part * plan.part_floats;
  std::fill_n(partials, plan.part_floats, 0.0F);
  const Range range = share_of(plan.bands.count, part, plan.parts);
  for (std::int64_t index = range.begin; index < range.end; ++index) {
    const Band band = band_at(g, plan.bands, index);
    const float* src = place_band(g, plan.bands, job.layout, band, job.src, job.src_strides,
                                  job.buffers + part * plan.buffer_floats);
    const float* diff_dst =
        job.diff_dst + band.image * job.dst_strides[0] + band.row * job.dst_strides[2];
    for (std::int64_t block = 0; block < blocks.count; ++block) {
      const bool last = block + 1 == blocks.count;
      const std::int32_t* places = job.places + (last ? g.src_group() * blocks.lanes : 0);
      const BlockCall call{src + blocks.src_channel(g, block), diff_dst + block * blocks.lanes,
                           &band, blocks.used(g, block)};
      float* partial = partials + block * (plan.part_floats / blocks.count);
      with_spread(blocks.spread, blocks.src_channels(g, block), places,
                  [&](const auto& spread) HWY_ATTR {
                    if (call.used == kLanes) {
                      sum_block(job, call, FullLanes<FloatTag>(), spread, partial);
                    } else {
                      sum_block(job, call, FirstLanes<FloatTag>{call.used}, spread, partial);
                    }
                  });
    }
  }
}

}  // namespace
}  // namespace ridgeline::native::conv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::native::conv {
namespace {

HWY_EXPORT(run_part);

std::size_t carve(const GroupedWeightsPlan& plan, std::byte* workspace, GroupedWeightsJob& job) {
  Carver carver(workspace);
  job.places = carver.take<std::int32_t>(2 * plan.geometry.src_group() * plan.blocks.lanes);
  job.partials = carver.take<float>(plan.part_floats * plan.parts);
  job.buffers = carver.take<float>(plan.buffer_floats * plan.parts);
  return carver.bytes();
}

// Adds up the parts of one block and stores them plain.
void combine(const GroupedWeightsJob& job, std::int64_t block, float* diff_weights) {
  const GroupedWeightsPlan& plan = *job.plan;
  const Geometry& g = plan.geometry;
  const std::int64_t lanes = plan.blocks.lanes, used = plan.blocks.used(g, block);
  std::int64_t filters[kMostLanes];
  list_filters(g, plan.blocks, block, filters);
  const float* from = job.partials + block * (plan.part_floats / plan.blocks.count);
  for (const Segment& segment : plan.segments) {
    for (std::int64_t i = 0; i < g.src_group(); ++i) {
      for (std::int64_t t = 0; t < segment.taps; ++t, from += lanes) {
        float* to = diff_weights + i * g.weights.in + segment.kernel[t];
        for (std::int64_t lane = 0; lane < used; ++lane) {
          float sum = from[lane];
          for (int part = 1; part < plan.parts; ++part) sum += from[part * plan.part_floats + lane];
          to[filters[lane]] = sum;
        }
      }
    }
  }
}

}  // namespace

GroupedWeightsPlan make_grouped_weights_plan(Geometry geometry, int threads) {
  GroupedWeightsPlan plan;
  plan.geometry = std::move(geometry);
  plan.threads = threads;
  const Geometry& g = plan.geometry;
  plan.blocks = lane_blocks(g);
  plan.segments = segments_of(g.phases[0].taps, g.src_step_x);
  const std::int64_t pixel_floats = g.src_channels * g.src_step_y * g.src_step_x + g.dst_channels;
  plan.bands =
      make_bands(g, std::clamp<std::int64_t>(kBandFloats / pixel_floats, 64, 512), threads);
  plan.parts = static_cast<int>(std::min<std::int64_t>(threads, plan.bands.count));
  plan.part_floats =
      plan.blocks.count * plan.blocks.lanes * g.src_group() * std::ssize(g.phases[0].taps);
  plan.buffer_floats = band_floats(plan.bands);
  GroupedWeightsJob job;
  plan.workspace_bytes = carve(plan, nullptr, job);
  return plan;
}

void run_grouped_weights(const GroupedWeightsPlan& plan, const Tensor& src, const Tensor& diff_dst,
                         float* diff_weights, std::byte* workspace) {
  const Geometry& g = plan.geometry;
  GroupedWeightsJob job;
  job.plan = &plan;
  job.layout = src_layout(g, plan.bands, src.strides);
  job.src = src.as<float>();
  job.diff_dst = diff_dst.as<float>();
  job.src_strides = src.strides;
  job.dst_strides = diff_dst.strides;
  carve(plan, workspace, job);
  fill_places(g, plan.blocks, 0, job.places);
  fill_places(g, plan.blocks, plan.blocks.count - 1,
              job.places + g.src_group() * plan.blocks.lanes);
  parallel([&](int thread, int threads) {
    for (int part = thread; part < plan.parts; part += threads) {
      HWY_DYNAMIC_DISPATCH(run_part)(job, part);
    }
  });
  parallel_for(plan.blocks.count, 4, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) combine(job, block, diff_weights);
  });
}

}  // namespace ridgeline::native::conv
#endif
