#include "backends/native/conv_grouped.h"

#include <algorithm>
#include <utility>

#include "backends/native/conv_blocking.h"
#include "backends/native/row_space.h"
#include "base/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/native/conv_grouped.cpp"
#include "base/simd_targets.h"
// The targets come first.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/native/activation-inl.h"
#include "backends/native/conv_spread-inl.h"

#ifndef RIDGELINE_NATIVE_CONV_GROUPED_JOB
#define RIDGELINE_NATIVE_CONV_GROUPED_JOB
namespace ridgeline::native::conv {

struct GroupedJob {
  const GroupedPlan* plan = nullptr;
  SrcLayout layout;
  const float* src = nullptr;
  const float* weights = nullptr;
  float* dst = nullptr;
  Strides src_strides{}, dst_strides{};
  Epilogue epilogue;
  float* packed = nullptr;         // [block][phase][segment][src channel][tap][lane]
  std::int32_t* places = nullptr;  // of full blocks, then of the last
  float* buffers = nullptr;        // copies of bands, one for each thread
};

}  // namespace ridgeline::native::conv
#endif

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native::conv::HWY_NAMESPACE {
namespace {

// One block of dst channels of one phase of a band.
struct BlockCall {
  const std::vector<Segment>* segments = nullptr;
  const float* weights = nullptr;  // packed
  const float* src = nullptr;      // of the band, at the block's first src channel
  float* dst = nullptr;            // of the band, at the block
  const float* bias = nullptr;
  std::int64_t images = 1, rows = 1, cols = 1;
  std::int64_t used = 0;  // lanes
};

// kRows rows of kCols neighbouring dst pixels. What a column of src holds is read once for all dst
// pixels of a row that see it.
template <int kTaps, int kStep, int kRows, int kCols, class Spread>
HWY_INLINE void add_segment(const Spread& spread, std::int64_t numbers, std::int64_t pitch,
                            const float* const (&rows)[kRows], const float* weights,
                            FloatVec (&sums)[kRows][kCols]) {
  const FloatTag d;
  for (std::int64_t i = 0; i < numbers; ++i, weights += kTaps * kLanes) {
    const auto numbers_of = spread.at(i);
    FloatVec w[kTaps];
#pragma GCC unroll 3
    for (int t = 0; t < kTaps; ++t) w[t] = hn::LoadU(d, weights + t * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 32
      for (int c = 0; c < (kCols - 1) * kStep + kTaps; ++c) {
        const FloatVec x = numbers_of.load(rows[r] + c * pitch);
#pragma GCC unroll 3
        for (int t = 0; t < kTaps; ++t) {
          const int at = c - t;
          if (at < 0 || at % kStep != 0 || at / kStep >= kCols) continue;
          sums[r][at / kStep] = hn::MulAdd(x, w[t], sums[r][at / kStep]);
        }
      }
    }
  }
}

// One tap at any step.
template <int kRows, int kCols, class Spread>
HWY_INLINE void add_tap(const Spread& spread, std::int64_t numbers, std::int64_t pitch,
                        const float* const (&rows)[kRows], const float* weights,
                        FloatVec (&sums)[kRows][kCols]) {
  for (std::int64_t i = 0; i < numbers; ++i, weights += kLanes) {
    const auto numbers_of = spread.at(i);
    const FloatVec w = hn::LoadU(FloatTag(), weights);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int c = 0; c < kCols; ++c) {
        sums[r][c] = hn::MulAdd(numbers_of.load(rows[r] + c * pitch), w, sums[r][c]);
      }
    }
  }
}

template <int kRows, int kCols>
HWY_INLINE void store_tile(const GroupedJob& job, const BlockCall& call, int rows,
                           float* const (&dst)[kRows], FloatVec (&sums)[kRows][kCols]) {
  const FloatTag d;
  const Epilogue& epilogue = job.epilogue;
  const std::int64_t step = job.plan->geometry.dst_step_x * job.dst_strides[3];
  const FirstLanes<FloatTag> lanes{call.used};
  const auto bias = call.bias == nullptr ? hn::Zero(d) : lanes.load(call.bias);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    if (r >= rows) break;
#pragma GCC unroll 8
    for (int c = 0; c < kCols; ++c) {
      FloatVec x = hn::Add(sums[r][c], bias);
      if (epilogue.activate) {
        x = native::HWY_NAMESPACE::any_forward(d, epilogue.activation, epilogue.slope, x);
      }
      if (call.used == kLanes) {
        hn::StoreU(x, d, dst[r] + c * step);
      } else {
        lanes.store(x, dst[r] + c * step);
      }
    }
  }
}

template <int kRows, int kCols, class Spread>
HWY_INLINE void run_tile(const GroupedJob& job, const BlockCall& call, const Spread& spread,
                         std::int64_t first_row, std::int64_t col) {
  const Geometry& g = job.plan->geometry;
  const std::int64_t pitch = job.layout.pixel_pitch, numbers = g.src_group();
  const std::int64_t total = call.images * call.rows;
  const int valid = static_cast<int>(std::min<std::int64_t>(kRows, total - first_row));
  // Rows past the end repeat the last one and are not stored.
  std::int64_t at[kRows];
  float* dst[kRows];
  for (int r = 0; r < kRows; ++r) {
    const std::int64_t index = first_row + std::min(r, valid - 1);
    const std::int64_t image = index / call.rows, row = index % call.rows;
    at[r] = image * job.layout.image_pitch + row * g.src_step_y * job.layout.row_pitch +
            col * g.src_step_x * pitch;
    dst[r] = call.dst + image * job.dst_strides[0] + row * g.dst_step_y * job.dst_strides[2] +
             col * g.dst_step_x * job.dst_strides[3];
  }
  FloatVec sums[kRows][kCols];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int c = 0; c < kCols; ++c) sums[r][c] = hn::Zero(FloatTag());
  }
  const float* weights = call.weights;
  for (const Segment& segment : *call.segments) {
    const float* rows[kRows];
    const float* src = call.src + job.layout.tap_offset(segment.first);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) rows[r] = src + at[r];
    if (segment.taps == 3 && g.src_step_x == 1) {
      add_segment<3, 1>(spread, numbers, pitch, rows, weights, sums);
    } else if (segment.taps == 3) {
      add_segment<3, 2>(spread, numbers, pitch, rows, weights, sums);
    } else if (segment.taps == 2) {
      add_segment<2, 1>(spread, numbers, pitch, rows, weights, sums);
    } else {
      add_tap(spread, numbers, g.src_step_x * pitch, rows, weights, sums);
    }
    weights += numbers * segment.taps * kLanes;
  }
  store_tile(job, call, valid, dst, sums);
}

// Columns [col, col + kCols) of all rows.
template <int kRows, int kCols, class Spread>
HWY_NOINLINE void run_columns(const GroupedJob& job, const BlockCall& call, const Spread& spread,
                              std::int64_t col) {
  for (std::int64_t row = 0; row < call.images * call.rows; row += kRows) {
    run_tile<kRows, kCols>(job, call, spread, row, col);
  }
}

// Eight sums at a time, wide or high: narrow images have many rows.
template <class Spread>
void run_block(const GroupedJob& job, const BlockCall& call, const Spread& spread) {
  std::int64_t col = 0;
  for (; col + 8 <= call.cols; col += 8) run_columns<1, 8>(job, call, spread, col);
  for (; col + 4 <= call.cols; col += 4) run_columns<2, 4>(job, call, spread, col);
  for (; col + 2 <= call.cols; col += 2) run_columns<4, 2>(job, call, spread, col);
  for (; col < call.cols; ++col) run_columns<8, 1>(job, call, spread, col);
}

void run_band(const GroupedJob& job, const Band& band, const float* src, std::int64_t block) {
  const GroupedPlan& plan = *job.plan;
  const Geometry& g = plan.geometry;
  const std::int64_t channel = block * plan.blocks.lanes;
  const bool last = block + 1 == plan.blocks.count;
  const std::int32_t* places = job.places + (last ? g.src_group() * plan.blocks.lanes : 0);
  const float* weights = job.packed + block * plan.block_floats;
  for (std::size_t p = 0; p < g.phases.size(); ++p) {
    const Phase& phase = g.phases[p];
    BlockCall call;
    call.segments = &plan.segments[p];
    call.weights = weights;
    call.images = band.images;
    call.rows = std::min(band.rows, phase.rows - band.row);
    call.cols = phase.cols;
    call.src = src + plan.blocks.src_channel(g, block);
    call.dst = job.dst + band.image * job.dst_strides[0] +
               (phase.first_y + band.row * g.dst_step_y) * job.dst_strides[2] +
               phase.first_x * job.dst_strides[3] + channel;
    call.bias = job.epilogue.bias == nullptr ? nullptr : job.epilogue.bias + channel;
    call.used = plan.blocks.used(g, block);
    weights += std::ssize(phase.taps) * g.src_group() * plan.blocks.lanes;
    if (call.rows <= 0) continue;
    with_spread(plan.blocks.spread, plan.blocks.src_channels(g, block), places,
                [&](const auto& spread) HWY_ATTR { run_block(job, call, spread); });
  }
}

// The items of one thread: pairs of a band and a piece of the blocks, band by band.
void run_share(const GroupedJob& job, int share) {
  const GroupedPlan& plan = *job.plan;
  const Range range = share_of(plan.bands.count * plan.chunks, share, plan.threads);
  std::int64_t placed = -1;
  const float* src = nullptr;
  for (std::int64_t item = range.begin; item < range.end; ++item) {
    const std::int64_t index = item / plan.chunks;
    const Band band = band_at(plan.geometry, plan.bands, index);
    if (index != placed) {
      src = place_band(plan.geometry, plan.bands, job.layout, band, job.src, job.src_strides,
                       job.buffers + share * plan.buffer_floats);
      placed = index;
    }
    const Range blocks = share_of(plan.blocks.count, static_cast<int>(item % plan.chunks),
                                  static_cast<int>(plan.chunks));
    for (std::int64_t block = blocks.begin; block < blocks.end; ++block) {
      run_band(job, band, src, block);
    }
  }
}

std::int64_t lanes_here() { return kLanes; }

}  // namespace
}  // namespace ridgeline::native::conv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::native::conv {
namespace {

HWY_EXPORT(run_share);
HWY_EXPORT(lanes_here);

// Zeros stand where a lane has no channel.
void pack_block(const GroupedJob& job, std::int64_t block) {
  const GroupedPlan& plan = *job.plan;
  const Geometry& g = plan.geometry;
  const std::int64_t lanes = plan.blocks.lanes, used = plan.blocks.used(g, block);
  std::int64_t filters[kMostLanes];
  list_filters(g, plan.blocks, block, filters);
  float* to = job.packed + block * plan.block_floats;
  for (const std::vector<Segment>& segments : plan.segments) {
    for (const Segment& segment : segments) {
      for (std::int64_t i = 0; i < g.src_group(); ++i) {
        for (std::int64_t t = 0; t < segment.taps; ++t, to += lanes) {
          const float* from = job.weights + i * g.weights.in + segment.kernel[t];
          for (std::int64_t lane = 0; lane < used; ++lane) to[lane] = from[filters[lane]];
          std::fill(to + used, to + lanes, 0.0F);
        }
      }
    }
  }
}

std::size_t carve(const GroupedPlan& plan, std::byte* workspace, GroupedJob& job) {
  Carver carver(workspace);
  job.packed = carver.take<float>(plan.block_floats * plan.blocks.count);
  job.places = carver.take<std::int32_t>(2 * plan.geometry.src_group() * plan.blocks.lanes);
  job.buffers = carver.take<float>(plan.buffer_floats * plan.threads);
  return carver.bytes();
}

}  // namespace

std::vector<Segment> segments_of(const std::vector<Tap>& taps, std::int64_t step) {
  std::vector<Segment> segments;
  // With a step of 2 only three taps share enough; with a larger one none do.
  const std::int64_t most = step <= 2 ? kMostSegmentTaps : 1;
  for (std::size_t t = 0; t < taps.size();) {
    std::size_t count = 1;
    while (t + count < taps.size() && static_cast<std::int64_t>(count) < most &&
           taps[t + count].dy == taps[t].dy &&
           taps[t + count].dx == taps[t].dx + static_cast<std::int64_t>(count)) {
      ++count;
    }
    if (step == 2 && count == 2) count = 1;
    Segment segment{taps[t], static_cast<std::int64_t>(count)};
    for (std::size_t i = 0; i < count; ++i) segment.kernel[i] = taps[t + i].kernel;
    segments.push_back(segment);
    t += count;
  }
  return segments;
}

std::int64_t LaneBlocks::used(const Geometry& g, std::int64_t block) const {
  return std::min(lanes, g.dst_channels - block * lanes);
}

std::int64_t LaneBlocks::src_channels(const Geometry& g, std::int64_t block) const {
  return (used(g, block) + g.dst_group() - 1) / g.dst_group() * g.src_group();
}

bool is_narrow(const Geometry& geometry) {
  const std::int64_t lanes = HWY_DYNAMIC_DISPATCH(lanes_here)();
  return geometry.groups > 1 && geometry.dst_group() < lanes && lanes % geometry.dst_group() == 0;
}

LaneBlocks lane_blocks(const Geometry& geometry) {
  LaneBlocks blocks;
  blocks.lanes = HWY_DYNAMIC_DISPATCH(lanes_here)();
  blocks.count = (geometry.dst_channels + blocks.lanes - 1) / blocks.lanes;
  blocks.spread = geometry.src_group() <= geometry.dst_group() ? Spread::lookup : Spread::gather;
  return blocks;
}

void list_filters(const Geometry& geometry, const LaneBlocks& blocks, std::int64_t block,
                  std::int64_t* filters) {
  for (std::int64_t lane = 0; lane < blocks.used(geometry, block); ++lane) {
    const std::int64_t channel = block * blocks.lanes + lane;
    filters[lane] = channel / geometry.dst_group() * geometry.weights.group +
                    channel % geometry.dst_group() * geometry.weights.out;
  }
}

void fill_places(const Geometry& geometry, const LaneBlocks& blocks, std::int64_t block,
                 std::int32_t* places) {
  const std::int64_t used = blocks.used(geometry, block);
  for (std::int64_t i = 0; i < geometry.src_group(); ++i) {
    for (std::int64_t lane = 0; lane < blocks.lanes; ++lane) {
      const std::int64_t place = lane / geometry.dst_group() * geometry.src_group() + i;
      *places++ = static_cast<std::int32_t>(lane < used ? place : 0);
    }
  }
}

GroupedPlan make_grouped_plan(Geometry geometry, int threads) {
  GroupedPlan plan;
  plan.geometry = std::move(geometry);
  plan.threads = threads;
  const Geometry& g = plan.geometry;
  plan.blocks = lane_blocks(g);
  const std::int64_t pixel_floats =
      g.src_channels * g.src_step_y * g.src_step_x + g.dst_channels * g.dst_step_y * g.dst_step_x;
  plan.bands =
      make_bands(g, std::clamp<std::int64_t>(kBandFloats / pixel_floats, 64, 512), 4 * threads);
  Geometry split = without_padded_rows(g);
  if (plan.bands.per_image == 1 && products_of(split) < products_of(g)) {
    plan.bands = make_image_bands(split, plan.bands.images);
    plan.geometry = std::move(split);
  }
  if (plan.bands.count < 4 * threads) {
    plan.chunks =
        std::min(plan.blocks.count, (4 * threads + plan.bands.count - 1) / plan.bands.count);
  }
  for (const Phase& phase : g.phases) {
    plan.segments.push_back(segments_of(phase.taps, g.src_step_x));
    plan.block_floats += std::ssize(phase.taps) * g.src_group() * plan.blocks.lanes;
  }
  plan.buffer_floats = band_floats(plan.bands);
  GroupedJob job;
  plan.workspace_bytes = carve(plan, nullptr, job);
  return plan;
}

void run_grouped(const GroupedPlan& plan, const Tensor& src, const float* weights,
                 const Tensor& dst, const Epilogue& epilogue, std::byte* workspace) {
  const Geometry& g = plan.geometry;
  GroupedJob job;
  job.plan = &plan;
  job.layout = src_layout(g, plan.bands, src.strides);
  job.src = src.as<float>();
  job.weights = weights;
  job.dst = dst.as<float>();
  job.src_strides = src.strides;
  job.dst_strides = dst.strides;
  job.epilogue = epilogue;
  carve(plan, workspace, job);
  fill_places(g, plan.blocks, 0, job.places);
  fill_places(g, plan.blocks, plan.blocks.count - 1,
              job.places + g.src_group() * plan.blocks.lanes);
  parallel_for(plan.blocks.count, 4, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) pack_block(job, block);
  });
  parallel([&](int thread, int threads) {
    for (int share = thread; share < plan.threads; share += threads) {
      HWY_DYNAMIC_DISPATCH(run_share)(job, share);
    }
  });
}

}  // namespace ridgeline::native::conv
#endif
