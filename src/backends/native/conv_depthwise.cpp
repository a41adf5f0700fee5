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

// A tap as seen from one row of dst: its src at column 0 and its weights, one for each channel.
struct RowTap {
  const float* src = nullptr;
  const float* weights = nullptr;
  std::int64_t dx = 0;
};

struct DepthwiseJob {
  const DepthwisePlan* plan = nullptr;
  const float* src = nullptr;
  float* dst = nullptr;
  Strides src_strides{}, dst_strides{};
  Epilogue epilogue;
  float* packed = nullptr;  // [tap][channel]
  RowTap* taps = nullptr;   // as many as a phase has, for each thread
};

}  // namespace ridgeline::native::conv
#endif

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native::conv::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace native::HWY_NAMESPACE;  // lanes and activations
namespace {

// kPixels neighbouring dst pixels, all channels.
template <int kPixels, class Activation>
HWY_INLINE void run_pixels(const DepthwiseJob& job, const RowTap* taps, std::int64_t tap_count,
                           std::int64_t src_offset, float* dst, const Activation& activation) {
  const hn::ScalableTag<float> d;
  const Geometry& g = job.plan->geometry;
  const std::int64_t src_step = g.src_step_x * job.src_strides[3];
  const std::int64_t dst_step = g.dst_step_x * job.dst_strides[3];
  const float* bias = job.epilogue.bias;
  for_lanes(d, g.src_channels, [&](auto lanes, std::int64_t channel) HWY_ATTR {
    hn::Vec<decltype(d)> sums[kPixels];
    const auto start = bias == nullptr ? hn::Zero(d) : lanes.load(bias + channel);
#pragma GCC unroll 8
    for (int p = 0; p < kPixels; ++p) sums[p] = start;
    for (const RowTap* tap = taps; tap != taps + tap_count; ++tap) {
      const auto w = lanes.load(tap->weights + channel);
      const float* from = tap->src + src_offset + channel;
#pragma GCC unroll 8
      for (int p = 0; p < kPixels; ++p) {
        sums[p] = hn::MulAdd(w, lanes.load(from + p * src_step), sums[p]);
      }
    }
#pragma GCC unroll 8
    for (int p = 0; p < kPixels; ++p) {
      lanes.store(activation.forward(d, sums[p]), dst + p * dst_step + channel);
    }
  });
}

// A column where some taps fall outside src.
template <class Activation>
void run_border(const DepthwiseJob& job, const RowTap* taps, std::int64_t tap_count, RowTap* used,
                std::int64_t col, float* dst, const Activation& activation) {
  const Geometry& g = job.plan->geometry;
  const std::int64_t x = col * g.src_step_x;
  std::int64_t count = 0;
  for (std::int64_t t = 0; t < tap_count; ++t) {
    if (x + taps[t].dx >= 0 && x + taps[t].dx < g.src_w) used[count++] = taps[t];
  }
  run_pixels<1>(job, used, count, x * job.src_strides[3], dst, activation);
}

template <class Activation>
void run_row(const DepthwiseJob& job, const Phase& phase, const float* packed, std::int64_t image,
             std::int64_t row, RowTap* scratch, const Activation& activation) {
  constexpr int kPixels = 4;
  const Geometry& g = job.plan->geometry;
  const float* src = job.src + image * job.src_strides[0];
  RowTap* taps = scratch;
  RowTap* used = scratch + job.plan->taps;
  std::int64_t count = 0, dx_min = 0, dx_max = 0;
  for (std::size_t t = 0; t < phase.taps.size(); ++t) {
    const Tap& tap = phase.taps[t];
    dx_min = std::min(dx_min, tap.dx);
    dx_max = std::max(dx_max, tap.dx);
    const std::int64_t y = row * g.src_step_y + tap.dy;
    if (y < 0 || y >= g.src_h) continue;
    taps[count++] = {src + y * job.src_strides[2] + tap.dx * job.src_strides[3],
                     packed + static_cast<std::int64_t>(t) * g.src_channels, tap.dx};
  }
  float* dst = job.dst + image * job.dst_strides[0] +
               (phase.first_y + row * g.dst_step_y) * job.dst_strides[2] +
               phase.first_x * job.dst_strides[3];
  const std::int64_t dst_step = g.dst_step_x * job.dst_strides[3];
  const std::int64_t src_step = g.src_step_x * job.src_strides[3];
  const auto [begin, end] = inside(phase.cols, g.src_step_x, dx_min, dx_max, g.src_w);
  for (std::int64_t col = 0; col < begin; ++col) {
    run_border(job, taps, count, used, col, dst + col * dst_step, activation);
  }
  std::int64_t col = begin;
  for (; col + kPixels <= end; col += kPixels) {
    run_pixels<kPixels>(job, taps, count, col * src_step, dst + col * dst_step, activation);
  }
  for (; col < end; ++col) {
    run_pixels<1>(job, taps, count, col * src_step, dst + col * dst_step, activation);
  }
  for (; col < phase.cols; ++col) {
    run_border(job, taps, count, used, col, dst + col * dst_step, activation);
  }
}

template <class Activation>
void run_rows(const DepthwiseJob& job, int share, const Activation& activation) {
  const Geometry& g = job.plan->geometry;
  RowTap* scratch = job.taps + share * 2 * job.plan->taps;
  const Range range = share_of(g.images * g.rows, share, job.plan->threads);
  for (std::int64_t item = range.begin; item < range.end; ++item) {
    const std::int64_t image = item / g.rows, row = item % g.rows;
    const float* packed = job.packed;
    for (const Phase& phase : g.phases) {
      if (row < phase.rows) run_row(job, phase, packed, image, row, scratch, activation);
      packed += static_cast<std::int64_t>(phase.taps.size()) * g.src_channels;
    }
  }
}

void run_share(const DepthwiseJob& job, int share) {
  if (!job.epilogue.activate) return run_rows(job, share, NoActivation());
  with_activation(job.epilogue.activation, job.epilogue.slope,
                  [&](auto activation) HWY_ATTR { run_rows(job, share, activation); });
}

}  // namespace
}  // namespace ridgeline::native::conv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::native::conv {
namespace {

HWY_EXPORT(run_share);

// Places the job's own arrays in the workspace; returns the bytes they take.
std::size_t carve(const DepthwisePlan& plan, std::byte* workspace, DepthwiseJob& job) {
  Carver carver(workspace);
  job.packed = carver.take<float>(plan.taps * plan.geometry.src_channels);
  job.taps = carver.take<RowTap>(2 * plan.taps * plan.threads);
  return carver.bytes();
}

}  // namespace

DepthwisePlan make_depthwise_plan(Geometry geometry, int threads) {
  DepthwisePlan plan;
  plan.geometry = std::move(geometry);
  plan.threads = threads;
  for (const Phase& phase : plan.geometry.phases) {
    plan.taps += static_cast<std::int64_t>(phase.taps.size());
  }
  DepthwiseJob job;
  plan.workspace_bytes = carve(plan, nullptr, job);
  return plan;
}

void run_depthwise(const DepthwisePlan& plan, const Tensor& src, const float* weights,
                   const Tensor& dst, const Epilogue& epilogue, std::byte* workspace) {
  const Geometry& g = plan.geometry;
  DepthwiseJob job;
  job.plan = &plan;
  job.src = src.as<float>();
  job.dst = dst.as<float>();
  job.src_strides = src.strides;
  job.dst_strides = dst.strides;
  job.epilogue = epilogue;
  carve(plan, workspace, job);
  float* to = job.packed;
  for (const Phase& phase : g.phases) {
    for (const Tap& tap : phase.taps) {
      for (std::int64_t channel = 0; channel < g.src_channels; ++channel) {
        *to++ = weights[channel * g.kernel_area + tap.kernel];
      }
    }
  }
  parallel([&](int thread, int threads) {
    for (int share = thread; share < plan.threads; share += threads) {
      HWY_DYNAMIC_DISPATCH(run_share)(job, share);
    }
  });
}

}  // namespace ridgeline::native::conv
#endif
