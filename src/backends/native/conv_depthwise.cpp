#include "backends/native/conv_depthwise.h"

#include <algorithm>
#include <utility>

#include "backends/native/row_space.h"
#include "base/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/native/conv_depthwise.cpp"
#include "base/simd_targets.h"
// The targets come first.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/native/activation-inl.h"
#include "backends/native/lanes-inl.h"

#ifndef RIDGELINE_NATIVE_CONV_DEPTHWISE_JOB
#define RIDGELINE_NATIVE_CONV_DEPTHWISE_JOB
namespace ridgeline::native::conv {

// Taps of a kernel row as seen from one row of dst: the src of the first at column 0, and the
// weights of the first, those of the next `channels` behind them.
template <typename T>
struct SrcTaps {
  const T* src = nullptr;
  const float* weights = nullptr;
  std::int64_t dx = 0;
  int taps = 1;
};

// T: of src and dst. Sums are floats, and so are the packed weights.
template <typename T>
struct DepthwiseJob {
  const DepthwisePlan* plan = nullptr;
  const T* src = nullptr;
  T* dst = nullptr;
  Strides src_strides{}, dst_strides{};
  Epilogue epilogue;
  float* packed = nullptr;     // [tap][channel]
  SrcTaps<T>* rows = nullptr;  // as many as taps, for each thread
};

// Where a tile of dst pixels stands.
template <typename T>
struct TilePlace {
  const SrcTaps<T>* rows = nullptr;
  std::int64_t row_count = 0;
  std::int64_t x = 0;  // src column of the first pixel at dx 0
  T* dst = nullptr;    // of the first pixel
};

}  // namespace ridgeline::native::conv
#endif

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native::conv::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace native::HWY_NAMESPACE;  // lanes and activations
namespace {

using Tag = hn::ScalableTag<float>;
using Vec = hn::Vec<Tag>;
constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(Tag()));

// kPixels neighbouring dst pixels by kVectors vectors of channels. A number of src is loaded once
// for all pixels that see it. kBorder: columns of src may lie outside.
template <int kTaps, int kStep, int kPixels, int kVectors, bool kBorder, typename T, class Lanes>
HWY_INLINE void add_taps(Lanes lanes, const SrcTaps<T>& row, std::int64_t x, std::int64_t width,
                         std::int64_t pixel, std::int64_t channels, std::int64_t channel,
                         Vec (&sums)[kPixels][kVectors]) {
  const std::int64_t first = x + row.dx;
  const T* src = row.src + x * pixel + channel;
  const float* weights = row.weights + channel;
#pragma GCC unroll 32
  for (int c = 0; c < (kPixels - 1) * kStep + kTaps; ++c) {
    if (kBorder && (first + c < 0 || first + c >= width)) continue;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const Vec number = lanes.load(src + c * pixel + v * kLanes);
#pragma GCC unroll 8
      for (int t = 0; t < kTaps; ++t) {
        const int at = c - t;
        if (at < 0 || at % kStep != 0 || at / kStep >= kPixels) continue;
        sums[at / kStep][v] = hn::MulAdd(number, lanes.load(weights + t * channels + v * kLanes),
                                         sums[at / kStep][v]);
      }
    }
  }
}

// One tap at any step.
template <int kPixels, int kVectors, bool kBorder, typename T, class Lanes>
HWY_INLINE void add_tap(Lanes lanes, const SrcTaps<T>& row, std::int64_t x, std::int64_t step,
                        std::int64_t width, std::int64_t pixel, std::int64_t channel,
                        Vec (&sums)[kPixels][kVectors]) {
  const T* src = row.src + x * pixel + channel;
#pragma GCC unroll 8
  for (int p = 0; p < kPixels; ++p) {
    const std::int64_t at = x + row.dx + p * step;
    if (kBorder && (at < 0 || at >= width)) continue;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      sums[p][v] = hn::MulAdd(lanes.load(src + p * step * pixel + v * kLanes),
                              lanes.load(row.weights + channel + v * kLanes), sums[p][v]);
    }
  }
}

HWY_INLINE Vec activated(const Epilogue& epilogue, Vec x) {
  const Tag d;
  if (epilogue.activation == ActivationKind::relu) return Relu().forward(d, x);
  if (epilogue.activation == ActivationKind::relu6) return Relu6().forward(d, x);
  return any_forward(d, epilogue.activation, epilogue.slope, x);
}

template <int kPixels, int kVectors, bool kBorder, typename T, class Lanes>
HWY_INLINE void run_vectors(const DepthwiseJob<T>& job, Lanes lanes, const TilePlace<T>& place,
                            std::int64_t channel) {
  const Geometry& g = job.plan->geometry;
  const std::int64_t pixel = job.src_strides[3], channels = g.src_channels, width = g.src_w;
  const std::int64_t step = g.src_step_x, x = place.x;
  Vec sums[kPixels][kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const Vec start = job.epilogue.bias == nullptr
                          ? hn::Zero(Tag())
                          : lanes.load(job.epilogue.bias + channel + v * kLanes);
#pragma GCC unroll 8
    for (int p = 0; p < kPixels; ++p) sums[p][v] = start;
  }
  for (const SrcTaps<T>* row = place.rows; row != place.rows + place.row_count; ++row) {
#define RIDGELINE_ADD_TAPS(taps, src_step)                                                     \
  add_taps<taps, src_step, kPixels, kVectors, kBorder>(lanes, *row, x, width, pixel, channels, \
                                                       channel, sums)
    if (row->taps == 1) {
      add_tap<kPixels, kVectors, kBorder>(lanes, *row, x, step, width, pixel, channel, sums);
    } else if (step == 2) {
      if (row->taps == 3) RIDGELINE_ADD_TAPS(3, 2);
      if (row->taps == 5) RIDGELINE_ADD_TAPS(5, 2);
      if (row->taps == 7) RIDGELINE_ADD_TAPS(7, 2);
    } else {
      if (row->taps == 2) RIDGELINE_ADD_TAPS(2, 1);
      if (row->taps == 3) RIDGELINE_ADD_TAPS(3, 1);
      if (row->taps == 4) RIDGELINE_ADD_TAPS(4, 1);
      if (row->taps == 5) RIDGELINE_ADD_TAPS(5, 1);
      if (row->taps == 6) RIDGELINE_ADD_TAPS(6, 1);
      if (row->taps == 7) RIDGELINE_ADD_TAPS(7, 1);
    }
#undef RIDGELINE_ADD_TAPS
  }
  const std::int64_t dst_step = g.dst_step_x * job.dst_strides[3];
#pragma GCC unroll 8
  for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const Vec sum = sums[p][v];
      lanes.store(job.epilogue.activate ? activated(job.epilogue, sum) : sum,
                  place.dst + p * dst_step + channel + v * kLanes);
    }
  }
}

// The channels [begin, end) of a tile. The last vectors of all may overlap those before them: what
// they store twice is the same.
template <int kPixels, int kVectors, bool kBorder, typename T>
HWY_NOINLINE void run_tile(const DepthwiseJob<T>& job, const TilePlace<T>& place,
                           std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t kChannels = kVectors * kLanes;
  for (std::int64_t channel = begin; channel < end; channel += kChannels) {
    const std::int64_t last = job.plan->geometry.src_channels - kChannels;
    run_vectors<kPixels, kVectors, kBorder>(job, FullLanes<Tag>(), place, std::min(channel, last));
  }
}

// Fewer channels than the tile has lanes.
template <typename T>
HWY_NOINLINE void run_few(const DepthwiseJob<T>& job, const TilePlace<T>& place, std::int64_t begin,
                          std::int64_t end) {
  for_lanes(Tag(), end - begin, [&](auto lanes, std::int64_t channel) HWY_ATTR {
    run_vectors<1, 1, true>(job, lanes, place, begin + channel);
  });
}

// Rows of the kernel that lie inside src for one row of dst; returns their number.
template <typename T>
std::int64_t list_rows(const DepthwiseJob<T>& job, std::size_t phase, std::int64_t image,
                       std::int64_t row, SrcTaps<T>* rows) {
  const Geometry& g = job.plan->geometry;
  const T* src = job.src + image * job.src_strides[0];
  std::int64_t count = 0;
  for (const TapRow& taps : job.plan->tap_rows[phase]) {
    const std::int64_t y = row * g.src_step_y + taps.dy;
    if (y < 0 || y >= g.src_h) continue;
    rows[count++] = {src + y * job.src_strides[2] + taps.dx * job.src_strides[3],
                     job.packed + taps.first * g.src_channels, taps.dx, taps.taps};
  }
  return count;
}

// One row of dst: eight sums at a time, of pixels and, where a row has fewer, of channels.
template <typename T>
void run_row(const DepthwiseJob<T>& job, const Phase& phase, TilePlace<T> place, T* dst,
             Range inner, Range channels) {
  const Geometry& g = job.plan->geometry;
  const std::int64_t dst_step = g.dst_step_x * job.dst_strides[3];
  const std::int64_t all = g.src_channels;
  for (std::int64_t col = 0; col < phase.cols;) {
    const std::int64_t left = phase.cols - col;
    place.x = col * g.src_step_x;
    place.dst = dst + col * dst_step;
    if (all < kLanes) {
      run_few(job, place, channels.begin, channels.end);
      col += 1;
    } else if (left >= 8) {
      if (col >= inner.begin && col + 8 <= inner.end) {
        run_tile<8, 1, false>(job, place, channels.begin, channels.end);
      } else {
        run_tile<8, 1, true>(job, place, channels.begin, channels.end);
      }
      col += 8;
    } else if (left >= 4 && all >= 2 * kLanes) {
      run_tile<4, 2, true>(job, place, channels.begin, channels.end);
      col += 4;
    } else if (left >= 2 && all >= 4 * kLanes) {
      run_tile<2, 4, true>(job, place, channels.begin, channels.end);
      col += 2;
    } else if (all >= 4 * kLanes) {
      run_tile<1, 4, true>(job, place, channels.begin, channels.end);
      col += 1;
    } else {
      run_few(job, place, channels.begin, channels.end);
      col += 1;
    }
  }
}

template <typename T>
void run_phase(const DepthwiseJob<T>& job, std::size_t index, std::int64_t image, std::int64_t row,
               SrcTaps<T>* rows, Range channels) {
  const Geometry& g = job.plan->geometry;
  const Phase& phase = g.phases[index];
  if (row >= phase.rows) return;
  TilePlace<T> place;
  place.rows = rows;
  place.row_count = list_rows(job, index, image, row, rows);
  std::int64_t dx_min = 0, dx_max = 0;
  for (std::int64_t r = 0; r < place.row_count; ++r) {
    dx_min = std::min(dx_min, rows[r].dx);
    dx_max = std::max(dx_max, rows[r].dx + rows[r].taps - 1);
  }
  const auto [begin, end] = inside(phase.cols, g.src_step_x, dx_min, dx_max, g.src_w);
  T* dst = job.dst + image * job.dst_strides[0] +
           (phase.first_y + row * g.dst_step_y) * job.dst_strides[2] +
           phase.first_x * job.dst_strides[3];
  run_row(job, phase, place, dst, {begin, end}, channels);
}

template <typename T>
void run_share(const DepthwiseJob<T>& job, int share) {
  const DepthwisePlan& plan = *job.plan;
  const Geometry& g = plan.geometry;
  SrcTaps<T>* rows = job.rows + share * plan.taps;
  const Range range = share_of(g.images * g.rows, share, plan.threads);
  for (std::int64_t channel = 0; channel < g.src_channels; channel += plan.chunk) {
    const Range channels{channel, std::min(channel + plan.chunk, g.src_channels)};
    for (std::int64_t item = range.begin; item < range.end; ++item) {
      for (std::size_t phase = 0; phase < g.phases.size(); ++phase) {
        run_phase(job, phase, item / g.rows, item % g.rows, rows, channels);
      }
    }
  }
}

void run_share_f32(const DepthwiseJob<float>& job, int share) { run_share(job, share); }
void run_share_bf16(const DepthwiseJob<BFloat16>& job, int share) { run_share(job, share); }

}  // namespace
}  // namespace ridgeline::native::conv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::native::conv {
namespace {

HWY_EXPORT(run_share_f32);
HWY_EXPORT(run_share_bf16);

// Channels are cut in multiples of the widest tile.
constexpr std::int64_t kChunkStep = 64;

// Places the job's own arrays in the workspace; returns the bytes they take.
template <typename T>
std::size_t carve(const DepthwisePlan& plan, std::byte* workspace, DepthwiseJob<T>& job) {
  Carver carver(workspace);
  job.packed = carver.take<float>(plan.taps * plan.geometry.src_channels);
  job.rows = carver.take<SrcTaps<T>>(plan.taps * plan.threads);
  return carver.bytes();
}

// A few channels at a time: rows of the plain weights are read through the cache once.
template <typename T>
void pack(const DepthwiseJob<T>& job, const T* weights) {
  constexpr std::int64_t kTogether = 16;
  const Geometry& g = job.plan->geometry;
  for (std::int64_t begin = 0; begin < g.src_channels; begin += kTogether) {
    const std::int64_t end = std::min(begin + kTogether, g.src_channels);
    float* row = job.packed;
    for (const Phase& phase : g.phases) {
      for (const Tap& tap : phase.taps) {
        for (std::int64_t channel = begin; channel < end; ++channel) {
          row[channel] = float_of(weights[channel * g.kernel_area + tap.kernel]);
        }
        row += g.src_channels;
      }
    }
  }
}

template <typename T, typename Share>
void run_job(const DepthwisePlan& plan, const Tensor& src, const Tensor& weights, const Tensor& dst,
             const Epilogue& epilogue, std::byte* workspace, const Share& run_share) {
  DepthwiseJob<T> job;
  job.plan = &plan;
  job.src = src.as<T>();
  job.dst = dst.as<T>();
  job.src_strides = src.strides;
  job.dst_strides = dst.strides;
  job.epilogue = epilogue;
  carve(plan, workspace, job);
  pack(job, weights.as<const T>());
  parallel([&](int thread, int threads) {
    for (int share = thread; share < plan.threads; share += threads) run_share(job, share);
  });
}

}  // namespace

std::vector<TapRow> tap_rows_of(const std::vector<Tap>& taps, int most, std::int64_t first) {
  std::vector<TapRow> rows;
  for (std::size_t t = 0; t < taps.size(); ++t) {
    const Tap& tap = taps[t];
    TapRow* last = rows.empty() ? nullptr : &rows.back();
    if (last != nullptr && last->dy == tap.dy && last->dx + last->taps == tap.dx &&
        last->taps < most) {
      ++last->taps;
    } else {
      rows.push_back({tap.dy, tap.dx, 1, first + static_cast<std::int64_t>(t)});
    }
  }
  return rows;
}

DepthwisePlan make_depthwise_plan(Geometry geometry, int threads) {
  DepthwisePlan plan;
  plan.geometry = without_unseen_taps(std::move(geometry));
  plan.threads = threads;
  const Geometry& g = plan.geometry;
  for (const Phase& phase : g.phases) {
    std::vector<TapRow> rows =
        tap_rows_of(phase.taps, g.src_step_x <= 2 ? kMostRowTaps : 1, plan.taps);
    // With a step of 2 pixels share src in rows of odd length; the last tap of others stands alone.
    if (g.src_step_x == 2) {
      for (std::size_t r = 0; r < rows.size(); ++r) {
        if (rows[r].taps % 2 != 0) continue;
        const TapRow row = rows[r];
        --rows[r].taps;
        rows.push_back({row.dy, row.dx + row.taps - 1, 1, row.first + row.taps - 1});
      }
    }
    plan.tap_rows.push_back(std::move(rows));
    plan.taps += std::ssize(phase.taps);
  }
  const std::int64_t fitting = kPanelFloats / std::max<std::int64_t>(1, plan.taps);
  plan.chunk = std::max(kChunkStep, fitting / kChunkStep * kChunkStep);
  DepthwiseJob<float> job;
  plan.workspace_bytes = carve(plan, nullptr, job);
  return plan;
}

void run_depthwise(const DepthwisePlan& plan, const Tensor& src, const Tensor& weights,
                   const Tensor& dst, const Epilogue& epilogue, std::byte* workspace) {
  if (src.spec.dtype == DType::bf16) {
    run_job<BFloat16>(plan, src, weights, dst, epilogue, workspace,
                      HWY_DYNAMIC_DISPATCH(run_share_bf16));
  } else {
    run_job<float>(plan, src, weights, dst, epilogue, workspace,
                   HWY_DYNAMIC_DISPATCH(run_share_f32));
  }
}

}  // namespace ridgeline::native::conv
#endif
