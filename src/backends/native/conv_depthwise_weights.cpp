#include <algorithm>
#include <utility>

#include "backends/native/conv_depthwise.h"
#include "base/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/native/conv_depthwise_weights.cpp"
#include "base/simd_targets.h"
// The targets come first.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/native/lanes-inl.h"

#ifndef RIDGELINE_NATIVE_CONV_DEPTHWISE_WEIGHTS_JOB
#define RIDGELINE_NATIVE_CONV_DEPTHWISE_WEIGHTS_JOB
namespace ridgeline::native::conv {

struct DepthwiseWeightsJob {
  const DepthwiseWeightsPlan* plan = nullptr;
  const float* src = nullptr;
  const float* diff_dst = nullptr;
  Strides src_strides{}, dst_strides{};
  float* partials = nullptr;  // [thread][tap][channel]
};

}  // namespace ridgeline::native::conv
#endif

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native::conv::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace native::HWY_NAMESPACE;  // lanes
namespace {

using Tag = hn::ScalableTag<float>;
using Vec = hn::Vec<Tag>;

// Some vectors of channels at once, the last of them whole or not.
template <int kVectors, class Lanes>
struct Channels {
  static constexpr std::int64_t kLanes = static_cast<std::int64_t>(hn::MaxLanes(Tag()));
  Lanes last;

  HWY_INLINE Vec load(const float* from, int v) const {
    if (v < kVectors - 1) return hn::LoadU(Tag(), from + v * kLanes);
    return last.load(from + v * kLanes);
  }
  HWY_INLINE void add(Vec sum, float* to, int v) const {
    if (v < kVectors - 1) {
      hn::StoreU(hn::Add(sum, hn::LoadU(Tag(), to + v * kLanes)), Tag(), to + v * kLanes);
    } else {
      last.store(hn::Add(sum, last.load(to + v * kLanes)), to + v * kLanes);
    }
  }
};

// Rows [begin, end) of one image.
struct Rows {
  std::int64_t image = 0, begin = 0, end = 0;
};

// kTaps neighbouring taps of one kernel row, for some channels, over a block of rows.
template <int kTaps, int kVectors, class Lanes>
HWY_INLINE void sum_taps(const DepthwiseWeightsJob& job, const Channels<kVectors, Lanes>& channels,
                         const Rows& rows, const Tap* taps, std::int64_t channel, float* partial) {
  const Geometry& g = job.plan->geometry;
  const std::int64_t src_step = g.src_step_x * job.src_strides[3];
  const std::int64_t dst_step = job.dst_strides[3];
  const auto [begin, end] = inside(g.cols, g.src_step_x, taps[0].dx, taps[kTaps - 1].dx, g.src_w);
  Vec sums[kTaps][kVectors];
#pragma GCC unroll 4
  for (int t = 0; t < kTaps; ++t) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sums[t][v] = hn::Zero(Tag());
  }
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const std::int64_t y = row * g.src_step_y + taps[0].dy;
    if (y < 0 || y >= g.src_h) continue;
    const float* src = job.src + rows.image * job.src_strides[0] + y * job.src_strides[2] + channel;
    const float* diff_dst =
        job.diff_dst + rows.image * job.dst_strides[0] + row * job.dst_strides[2] + channel;
    const float* from[kTaps];
#pragma GCC unroll 4
    for (int t = 0; t < kTaps; ++t) from[t] = src + taps[t].dx * job.src_strides[3];

    const auto border = [&](std::int64_t first, std::int64_t last) HWY_ATTR {
      for (std::int64_t col = first; col < last; ++col) {
#pragma GCC unroll 4
        for (int t = 0; t < kTaps; ++t) {
          const std::int64_t x = col * g.src_step_x + taps[t].dx;
          if (x < 0 || x >= g.src_w) continue;
#pragma GCC unroll 4
          for (int v = 0; v < kVectors; ++v) {
            sums[t][v] = hn::MulAdd(channels.load(diff_dst + col * dst_step, v),
                                    channels.load(from[t] + col * src_step, v), sums[t][v]);
          }
        }
      }
    };
    border(0, begin);
    for (std::int64_t col = begin; col < end; ++col) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const Vec diff = channels.load(diff_dst + col * dst_step, v);
#pragma GCC unroll 4
        for (int t = 0; t < kTaps; ++t) {
          sums[t][v] = hn::MulAdd(diff, channels.load(from[t] + col * src_step, v), sums[t][v]);
        }
      }
    }
    border(end, g.cols);
  }
#pragma GCC unroll 4
  for (int t = 0; t < kTaps; ++t) {
    float* to = partial + t * g.src_channels + channel;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) channels.add(sums[t][v], to, v);
  }
}

template <int kVectors, class Lanes>
HWY_NOINLINE void run_channels(const DepthwiseWeightsJob& job, Lanes last, const Rows& rows,
                               std::int64_t channel, float* partial) {
  const Channels<kVectors, Lanes> channels{last};
  const Geometry& g = job.plan->geometry;
  const std::vector<Tap>& taps = g.phases[0].taps;
  // Three taps of a row share each diff_dst; the sums of more would not fit the registers.
  for (std::size_t t = 0; t < taps.size();) {
    float* to = partial + static_cast<std::int64_t>(t) * g.src_channels;
    if (t + 3 <= taps.size() && taps[t].dy == taps[t + 2].dy) {
      sum_taps<3, kVectors>(job, channels, rows, &taps[t], channel, to);
      t += 3;
    } else {
      sum_taps<1, kVectors>(job, channels, rows, &taps[t], channel, to);
      t += 1;
    }
  }
}

void run_share(const DepthwiseWeightsJob& job, int share) {
  constexpr int kVectors = 4;
  const DepthwiseWeightsPlan& plan = *job.plan;
  const Geometry& g = plan.geometry;
  float* partial = job.partials + share * plan.part_floats;
  std::fill_n(partial, plan.part_floats, 0.0F);
  const Range range = share_of(g.images * g.rows, share, plan.threads);
  for (std::int64_t begin = range.begin; begin < range.end;) {
    const std::int64_t image = begin / g.rows, row = begin % g.rows;
    const std::int64_t count = std::min({plan.block_rows, g.rows - row, range.end - begin});
    const Rows rows{image, row, row + count};
    const std::int64_t lanes = lanes_of(Tag());
    std::int64_t channel = 0;
    for (; channel + kVectors * lanes <= g.src_channels; channel += kVectors * lanes) {
      run_channels<kVectors>(job, FullLanes<Tag>(), rows, channel, partial);
    }
    for (; channel + lanes <= g.src_channels; channel += lanes) {
      run_channels<1>(job, FullLanes<Tag>(), rows, channel, partial);
    }
    if (channel < g.src_channels) {
      run_channels<1>(job, FirstLanes<Tag>{g.src_channels - channel}, rows, channel, partial);
    }
    begin += count;
  }
}

}  // namespace
}  // namespace ridgeline::native::conv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::native::conv {
namespace {

HWY_EXPORT(run_share);

}  // namespace

DepthwiseWeightsPlan make_depthwise_weights_plan(Geometry geometry, int threads) {
  DepthwiseWeightsPlan plan;
  plan.geometry = std::move(geometry);
  plan.threads = threads;
  const Geometry& g = plan.geometry;
  const std::int64_t row_floats = g.cols * g.src_channels * (g.src_step_y * g.src_step_x + 1);
  plan.block_rows = std::max<std::int64_t>(1, kBandFloats / row_floats);
  plan.part_floats = (g.src_channels * g.kernel_area + 15) / 16 * 16;
  plan.workspace_bytes = static_cast<std::size_t>(plan.part_floats * threads) * sizeof(float);
  return plan;
}

void run_depthwise_weights(const DepthwiseWeightsPlan& plan, const Tensor& src,
                           const Tensor& diff_dst, float* diff_weights, std::byte* workspace) {
  DepthwiseWeightsJob job;
  job.plan = &plan;
  job.src = src.as<float>();
  job.diff_dst = diff_dst.as<float>();
  job.src_strides = src.strides;
  job.dst_strides = diff_dst.strides;
  job.partials = reinterpret_cast<float*>(workspace);
  parallel([&](int thread, int threads) {
    for (int share = thread; share < plan.threads; share += threads) {
      HWY_DYNAMIC_DISPATCH(run_share)(job, share);
    }
  });

  const Geometry& g = plan.geometry;
  const auto total = [&](std::int64_t index) {
    float sum = 0.0F;
    for (int part = 0; part < plan.threads; ++part) {
      sum += job.partials[part * plan.part_floats + index];
    }
    return sum;
  };
  for (std::int64_t channel = 0; channel < g.src_channels; ++channel) {
    for (std::int64_t k = 0; k < g.kernel_area; ++k) {
      diff_weights[channel * g.kernel_area + k] = total(k * g.src_channels + channel);
    }
  }
}

}  // namespace ridgeline::native::conv
#endif
