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

// T: of src and diff_dst.
template <typename T>
struct DepthwiseWeightsJob {
  const DepthwiseWeightsPlan* plan = nullptr;
  const T* src = nullptr;
  const T* diff_dst = nullptr;
  Strides src_strides{}, dst_strides{};
  float* partials = nullptr;  // [thread][tap][channel]
};

// Taps that are summed at once where neighbouring pixels read other src: at a step above 1.
inline constexpr int kMostApart = 3;

}  // namespace ridgeline::native::conv
#endif

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native::conv::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace native::HWY_NAMESPACE;  // lanes
namespace {

using Tag = hn::ScalableTag<float>;
using Vec = hn::Vec<Tag>;
constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(Tag()));

// Vectors of channels for so many taps: the sums, the src of all taps and diff_dst stay in
// registers.
constexpr int vectors_for(int taps) {
  if (kManyRegisters) return taps <= 3 ? 4 : 2;
  return taps <= 3 ? 2 : 1;
}

// Some vectors of channels at once, the last of them whole or not.
template <int kVectors, class Lanes>
struct Channels {
  Lanes last;

  template <typename T>
  HWY_INLINE Vec load(const T* from, int v) const {
    if (v < kVectors - 1) return FullLanes<Tag>().load(from + v * kLanes);
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

template <int kTaps, int kVectors>
struct TapSums {
  Vec sums[kTaps][kVectors];

  HWY_INLINE TapSums() {
#pragma GCC unroll 8
    for (int t = 0; t < kTaps; ++t) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[t][v] = hn::Zero(Tag());
    }
  }
};

// One row at a step of 1: what one pixel reads, its neighbour reads as well, so each number of src
// is loaded once and passed on from tap to tap.
template <int kTaps, int kVectors, typename T, class Lanes>
HWY_INLINE void slide_row(const DepthwiseWeightsJob<T>& job,
                          const Channels<kVectors, Lanes>& channels, std::int64_t dx, const T* src,
                          const T* diff_dst, TapSums<kTaps, kVectors>& tile) {
  const Geometry& g = job.plan->geometry;
  const std::int64_t pixel = job.src_strides[3], dst_pixel = job.dst_strides[3];
  Vec x[kTaps][kVectors];
#pragma GCC unroll 8
  for (int t = 1; t < kTaps; ++t) {
    const std::int64_t at = dx + t - 1;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      x[t][v] = at >= 0 && at < g.src_w ? channels.load(src + at * pixel, v) : hn::Zero(Tag());
    }
  }
  const auto add = [&](std::int64_t col, auto is_inside) HWY_ATTR {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const Vec diff = channels.load(diff_dst + col * dst_pixel, v);
#pragma GCC unroll 8
      for (int t = 0; t + 1 < kTaps; ++t) {
        x[t][v] = x[t + 1][v];
        tile.sums[t][v] = hn::MulAdd(diff, x[t][v], tile.sums[t][v]);
      }
      constexpr int kLast = kTaps - 1;
      if constexpr (is_inside()) {
        x[kLast][v] = channels.load(src + (col + dx + kLast) * pixel, v);
        tile.sums[kLast][v] = hn::MulAdd(diff, x[kLast][v], tile.sums[kLast][v]);
      } else {
        x[kLast][v] = hn::Zero(Tag());
      }
    }
  };
  const auto [begin, end] = inside(g.cols, 1, dx + kTaps - 1, dx + kTaps - 1, g.src_w);
  for (std::int64_t col = 0; col < begin; ++col) add(col, std::false_type());
  for (std::int64_t col = begin; col < end; ++col) add(col, std::true_type());
  for (std::int64_t col = end; col < g.cols; ++col) add(col, std::false_type());
}

// One row at any step.
template <int kTaps, int kVectors, typename T, class Lanes>
HWY_INLINE void step_row(const DepthwiseWeightsJob<T>& job,
                         const Channels<kVectors, Lanes>& channels, std::int64_t dx, const T* src,
                         const T* diff_dst, TapSums<kTaps, kVectors>& tile) {
  const Geometry& g = job.plan->geometry;
  const std::int64_t pixel = job.src_strides[3], dst_pixel = job.dst_strides[3];
  const auto add = [&](std::int64_t col, bool border) HWY_ATTR {
    Vec diff[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) diff[v] = channels.load(diff_dst + col * dst_pixel, v);
#pragma GCC unroll 8
    for (int t = 0; t < kTaps; ++t) {
      const std::int64_t x = col * g.src_step_x + dx + t;
      if (border && (x < 0 || x >= g.src_w)) continue;
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        tile.sums[t][v] = hn::MulAdd(diff[v], channels.load(src + x * pixel, v), tile.sums[t][v]);
      }
    }
  };
  const auto [begin, end] = inside(g.cols, g.src_step_x, dx, dx + kTaps - 1, g.src_w);
  for (std::int64_t col = 0; col < begin; ++col) add(col, true);
  for (std::int64_t col = begin; col < end; ++col) add(col, false);
  for (std::int64_t col = end; col < g.cols; ++col) add(col, true);
}

// kTaps neighbouring taps of one kernel row, for some channels, over a block of rows.
template <int kTaps, bool kSlide, int kVectors, typename T, class Lanes>
HWY_NOINLINE void sum_taps(const DepthwiseWeightsJob<T>& job, Lanes last, const Rows& rows,
                           const TapRow& taps, std::int64_t channel, float* partial) {
  const Geometry& g = job.plan->geometry;
  const Channels<kVectors, Lanes> channels{last};
  TapSums<kTaps, kVectors> tile;
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const std::int64_t y = row * g.src_step_y + taps.dy;
    if (y < 0 || y >= g.src_h) continue;
    const T* src = job.src + rows.image * job.src_strides[0] + y * job.src_strides[2] + channel;
    const T* diff_dst =
        job.diff_dst + rows.image * job.dst_strides[0] + row * job.dst_strides[2] + channel;
    if constexpr (kSlide) {
      slide_row(job, channels, taps.dx, src, diff_dst, tile);
    } else {
      step_row(job, channels, taps.dx, src, diff_dst, tile);
    }
  }
#pragma GCC unroll 8
  for (int t = 0; t < kTaps; ++t) {
    float* to = partial + (taps.first + t) * g.src_channels + channel;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) channels.add(tile.sums[t][v], to, v);
  }
}

template <int kTaps, bool kSlide, typename T>
void sum_channels(const DepthwiseWeightsJob<T>& job, const Rows& rows, const TapRow& taps,
                  float* partial) {
  constexpr int kVectors = vectors_for(kTaps);
  const std::int64_t channels = job.plan->geometry.src_channels;
  std::int64_t channel = 0;
  for (; channel + kVectors * kLanes <= channels; channel += kVectors * kLanes) {
    sum_taps<kTaps, kSlide, kVectors>(job, FullLanes<Tag>(), rows, taps, channel, partial);
  }
  for (; channel + kLanes <= channels; channel += kLanes) {
    sum_taps<kTaps, kSlide, 1>(job, FullLanes<Tag>(), rows, taps, channel, partial);
  }
  if (channel < channels) {
    sum_taps<kTaps, kSlide, 1>(job, FirstLanes<Tag>{channels - channel}, rows, taps, channel,
                               partial);
  }
}

// A kernel row of up to kTaps taps.
template <int kTaps, bool kSlide, typename T>
void sum_tap_row(const DepthwiseWeightsJob<T>& job, const Rows& rows, const TapRow& taps,
                 float* partial) {
  if (taps.taps == kTaps) return sum_channels<kTaps, kSlide>(job, rows, taps, partial);
  if constexpr (kTaps > 1) sum_tap_row<kTaps - 1, kSlide>(job, rows, taps, partial);
}

template <typename T>
void run_share(const DepthwiseWeightsJob<T>& job, int share) {
  const DepthwiseWeightsPlan& plan = *job.plan;
  const Geometry& g = plan.geometry;
  float* partial = job.partials + share * plan.part_floats;
  std::fill_n(partial, plan.part_floats, 0.0F);
  const Range range = share_of(g.images * g.rows, share, plan.threads);
  for (std::int64_t begin = range.begin; begin < range.end;) {
    const std::int64_t image = begin / g.rows, row = begin % g.rows;
    const std::int64_t count = std::min({plan.block_rows, g.rows - row, range.end - begin});
    const Rows rows{image, row, row + count};
    for (const TapRow& taps : plan.tap_rows) {
      if (g.src_step_x == 1) {
        sum_tap_row<kMostRowTaps, true>(job, rows, taps, partial);
      } else {
        sum_tap_row<kMostApart, false>(job, rows, taps, partial);
      }
    }
    begin += count;
  }
}

void run_share_f32(const DepthwiseWeightsJob<float>& job, int share) { run_share(job, share); }
void run_share_bf16(const DepthwiseWeightsJob<BFloat16>& job, int share) { run_share(job, share); }

}  // namespace
}  // namespace ridgeline::native::conv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::native::conv {
namespace {

HWY_EXPORT(run_share_f32);
HWY_EXPORT(run_share_bf16);

void store(float sum, float* to) { *to = sum; }
void store(float sum, BFloat16* to) { *to = bf16_of(sum); }

template <typename T, typename Share>
void run_job(const DepthwiseWeightsPlan& plan, const Tensor& src, const Tensor& diff_dst,
             T* diff_weights, std::byte* workspace, const Share& run_share) {
  DepthwiseWeightsJob<T> job;
  job.plan = &plan;
  job.src = src.as<T>();
  job.diff_dst = diff_dst.as<T>();
  job.src_strides = src.strides;
  job.dst_strides = diff_dst.strides;
  job.partials = reinterpret_cast<float*>(workspace);
  parallel([&](int thread, int threads) {
    for (int share = thread; share < plan.threads; share += threads) run_share(job, share);
  });

  // A few channels at a time: what is written stays in the cache until its row is full.
  constexpr std::int64_t kTogether = 16;
  const Geometry& g = plan.geometry;
  for (std::int64_t begin = 0; begin < g.src_channels; begin += kTogether) {
    const std::int64_t end = std::min(begin + kTogether, g.src_channels);
    for (std::int64_t k = 0; k < g.kernel_area; ++k) {
      for (std::int64_t channel = begin; channel < end; ++channel) {
        float sum = 0.0F;
        for (int part = 0; part < plan.threads; ++part) {
          sum += job.partials[part * plan.part_floats + k * g.src_channels + channel];
        }
        store(sum, diff_weights + channel * g.kernel_area + k);
      }
    }
  }
}

}  // namespace

DepthwiseWeightsPlan make_depthwise_weights_plan(Geometry geometry, int threads) {
  DepthwiseWeightsPlan plan;
  plan.geometry = without_unseen_taps(std::move(geometry));
  plan.threads = threads;
  const Geometry& g = plan.geometry;
  const std::vector<Tap>& taps = g.phases[0].taps;
  plan.tap_rows = tap_rows_of(taps, g.src_step_x == 1 ? kMostRowTaps : kMostApart, 0);
  // Sums stand where their taps do in the kernel.
  for (TapRow& row : plan.tap_rows) row.first = taps[static_cast<std::size_t>(row.first)].kernel;
  const std::int64_t row_floats = g.cols * g.src_channels * (g.src_step_y * g.src_step_x + 1);
  plan.block_rows = std::max<std::int64_t>(1, kBandFloats / row_floats);
  plan.part_floats = (g.src_channels * g.kernel_area + 15) / 16 * 16;
  plan.workspace_bytes = static_cast<std::size_t>(plan.part_floats * threads) * sizeof(float);
  return plan;
}

void run_depthwise_weights(const DepthwiseWeightsPlan& plan, const Tensor& src,
                           const Tensor& diff_dst, const Tensor& diff_weights,
                           std::byte* workspace) {
  if (src.spec.dtype == DType::bf16) {
    run_job(plan, src, diff_dst, diff_weights.as<BFloat16>(), workspace,
            HWY_DYNAMIC_DISPATCH(run_share_bf16));
  } else {
    run_job(plan, src, diff_dst, diff_weights.as<float>(), workspace,
            HWY_DYNAMIC_DISPATCH(run_share_f32));
  }
}

}  // namespace ridgeline::native::conv
#endif
