#include "backends/native/conv_weights.h"

#include <algorithm>
#include <utility>

#include "backends/native/row_space.h"
#include "base/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/native/conv_weights.cpp"
#include "base/simd_targets.h"
// The targets come first.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/native/conv_tile-inl.h"

#ifndef RIDGELINE_NATIVE_CONV_WEIGHTS_JOB
#define RIDGELINE_NATIVE_CONV_WEIGHTS_JOB
namespace ridgeline::native::conv {

struct WeightsJob {
  const WeightsPlan* plan = nullptr;
  SrcLayout layout;
  const float* src = nullptr;
  const float* diff_dst = nullptr;
  float* diff_weights = nullptr;
  Strides src_strides{}, dst_strides{};
  std::int64_t* rows = nullptr;  // offset of each row of the gradient from a pixel's src
  Run* runs = nullptr;
  float* partials = nullptr;
  float* buffers = nullptr;
};

// Partial sums that stay in the second-level cache while pixels stream past.
inline constexpr std::int64_t kPartialFloats = 384 * 1024 / 4;

// Src channels whose gradients one call of `combine` stores: what it writes stays in the cache.
inline constexpr std::int64_t kCombineChannels = 16;

// Walks over the pixels of a band in pieces of up to `pixels`, as runs along which src and diff_dst
// both advance evenly.
struct PixelWalk {
  Band band;
  std::int64_t image = 0, row = 0, col = 0;

  [[nodiscard]] std::int64_t next(const WeightsJob& job, std::int64_t pixels, Run* runs) {
    const Geometry& g = job.plan->geometry;
    const std::int64_t src_step = g.src_step_x * job.layout.pixel_pitch;
    std::int64_t count = 0;
    while (pixels > 0 && image < band.images) {
      const std::int64_t length = std::min(g.dst_w - col, pixels);
      const Run run = {
          image * job.layout.image_pitch + row * g.src_step_y * job.layout.row_pitch +
              col * src_step,
          image * job.dst_strides[0] + row * job.dst_strides[2] + col * job.dst_strides[3], length};
      Run* last = count == 0 ? nullptr : &runs[count - 1];
      if (last != nullptr && last->rows + last->count * src_step == run.rows &&
          last->vectors + last->count * job.dst_strides[3] == run.vectors) {
        last->count += length;
      } else {
        runs[count++] = run;
      }
      pixels -= length;
      col += length;
      if (col == g.dst_w) {
        col = 0;
        if (++row == band.rows) {
          row = 0;
          ++image;
        }
      }
    }
    return count;
  }
};

}  // namespace ridgeline::native::conv
#endif

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native::conv::HWY_NAMESPACE {
namespace {

// One panel of dst channels over a block of pixels.
struct PanelCall {
  const float* src = nullptr;       // of the band and group
  const float* diff_dst = nullptr;  // of the band and panel
  const Run* runs = nullptr;
  std::int64_t run_count = 0, tail = 0;
  float* partial = nullptr;  // [row][lanes of the panel]
  bool first = false;        // partial sums begin here
};

template <class D>
HWY_INLINE void add_to(D d, hn::Vec<D> sum, float* to, bool first) {
  hn::StoreU(first ? sum : hn::Add(sum, hn::LoadU(d, to)), d, to);
}

template <class D, int kVectors, bool kTail>
HWY_NOINLINE void run_panel(const WeightsJob& job, const PanelCall& call) {
  using T = Tile<D, kVectors>;
  const D d;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  constexpr std::int64_t kWidth = kVectors * kLanes;
  const WeightsPlan& plan = *job.plan;
  const PixelVectors<D, kVectors, kTail> pixels{call.diff_dst, job.dst_strides[3],
                                                plan.geometry.src_step_x * job.layout.pixel_pitch,
                                                call.tail};
  for (std::int64_t k = 0; k < plan.depth; k += T::kRows) {
    const int rows = static_cast<int>(std::min<std::int64_t>(T::kRows, plan.depth - k));
    // Rows past the end repeat the last one and are not stored.
    const float* row[T::kRows];
#pragma GCC unroll 8
    for (int r = 0; r < T::kRows; ++r) row[r] = call.src + job.rows[k + std::min(r, rows - 1)];
    T tile;
    tile.accumulate(row, call.runs, call.run_count, pixels);
    float* to = call.partial + k * kWidth;
#pragma GCC unroll 8
    for (int r = 0; r < T::kRows; ++r, to += kWidth) {
      if (r >= rows) break;
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        add_to(d, tile.sums[r][v], to + v * kLanes, call.first);
      }
    }
  }
}

template <class D, bool kTail>
void run_panel_of(std::int64_t vectors, const WeightsJob& job, const PanelCall& call) {
  switch (vectors) {
    case 1:
      return run_panel<D, 1, kTail>(job, call);
    case 2:
      return run_panel<D, 2, kTail>(job, call);
  }
  if constexpr (kMaxVectors == 4) {
    if (vectors == 3) return run_panel<D, 3, kTail>(job, call);
    return run_panel<D, 4, kTail>(job, call);
  }
}

template <class D>
void run_tail(std::int64_t vectors, const WeightsJob& job, const PanelCall& call) {
  if (call.tail < static_cast<std::int64_t>(hn::MaxLanes(D()))) {
    run_panel_of<D, true>(vectors, job, call);
  } else {
    run_panel_of<D, false>(vectors, job, call);
  }
}

// A block of pixels of a band, for one panel.
void run_unit(const WeightsJob& job, std::int64_t unit, PanelCall call) {
  const WeightsPlan& plan = *job.plan;
  const Geometry& g = plan.geometry;
  const Panels& panels = plan.panels;
  const std::int64_t group = unit / panels.count, panel = unit % panels.count;
  const std::int64_t first = panels.first_vector(panel) * panels.lanes;
  call.src += group * g.src_group();
  call.diff_dst += group * g.dst_group() + first;
  call.tail = panels.tail_of(panel);
  if constexpr (hn::MaxLanes(hn::ScalableTag<float>()) > 8) {
    if (panels.lanes == 8) {
      return run_tail<hn::CappedTag<float, 8>>(panels.vectors_of(panel), job, call);
    }
  }
  run_tail<hn::ScalableTag<float>>(panels.vectors_of(panel), job, call);
}

// Adds up the parts of some src channels of one panel and stores them plain.
void combine(const WeightsJob& job, std::int64_t unit, const float* partial, std::int64_t begin,
             std::int64_t end) {
  const WeightsPlan& plan = *job.plan;
  const Geometry& g = plan.geometry;
  const Panels& panels = plan.panels;
  const std::int64_t group = unit / panels.count, panel = unit % panels.count;
  const std::int64_t first = panels.first_vector(panel) * panels.lanes;
  const std::int64_t width = panels.vectors_of(panel) * panels.lanes;
  const std::int64_t channels = std::min(width, panels.channels - first);
  const std::vector<Tap>& taps = g.phases[0].taps;
  // Each dst channel's stretch is written as a whole: rows of weights often lie a power of two
  // apart, and lines of several, each begun and left, would fall into the same set of the cache.
  for (std::int64_t lane = 0; lane < channels; ++lane) {
    float* row = job.diff_weights + group * g.weights.group + (first + lane) * g.weights.out;
    const float* of_tap = partial + begin * width + lane;
    for (const Tap& tap : taps) {
      const float* from = of_tap;
      for (std::int64_t channel = begin; channel < end; ++channel, from += width) {
        float sum = *from;
        for (int part = 1; part < plan.pixel_parts; ++part) sum += from[part * plan.part_floats];
        row[channel * g.weights.in + tap.kernel] = sum;
      }
      of_tap += g.src_group() * width;
    }
  }
}

// The panels and pixels of one thread. Panels go in groups whose partial sums stay in the cache.
void run_share(const WeightsJob& job, int share) {
  const WeightsPlan& plan = *job.plan;
  const Geometry& g = plan.geometry;
  const int part = share / plan.unit_parts;
  const Range units =
      share_of(g.groups * plan.panels.count, share % plan.unit_parts, plan.unit_parts);
  const Range bands = share_of(plan.bands.count, part, plan.pixel_parts);
  const bool whole = plan.pixel_parts == 1;
  float* partials = job.partials + (whole ? share : part) * plan.part_floats;
  Run* runs = job.runs + share * plan.block_pixels;
  float* buffer = job.buffers + share * plan.buffer_floats;
  for (std::int64_t begin = units.begin; begin < units.end; begin += plan.at_once) {
    const std::int64_t end = std::min(begin + plan.at_once, units.end);
    PanelCall call;
    call.runs = runs;
    call.first = true;
    for (std::int64_t index = bands.begin; index < bands.end; ++index) {
      const Band band = band_at(g, plan.bands, index);
      call.src = place_band(g, plan.bands, job.layout, band, job.src, job.src_strides, buffer);
      call.diff_dst =
          job.diff_dst + band.image * job.dst_strides[0] + band.row * job.dst_strides[2];
      PixelWalk walk{band};
      while ((call.run_count = walk.next(job, plan.block_pixels, runs)) > 0) {
        for (std::int64_t unit = begin; unit < end; ++unit) {
          call.partial = partials + (whole ? unit - begin : unit) * plan.unit_floats;
          run_unit(job, unit, call);
        }
        call.first = false;
      }
    }
    if (!whole) continue;
    for (std::int64_t unit = begin; unit < end; ++unit) {
      const float* partial = partials + (unit - begin) * plan.unit_floats;
      for (std::int64_t channel = 0; channel < g.src_group(); channel += kCombineChannels) {
        combine(job, unit, partial, channel, std::min(channel + kCombineChannels, g.src_group()));
      }
    }
  }
}

}  // namespace
}  // namespace ridgeline::native::conv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::native::conv {
namespace {

HWY_EXPORT(run_share);
HWY_EXPORT(combine);

// Places the job's own arrays in the workspace; returns the bytes they take.
std::size_t carve(const WeightsPlan& plan, std::byte* workspace, WeightsJob& job) {
  Carver carver(workspace);
  job.rows = carver.take<std::int64_t>(plan.depth);
  job.runs = carver.take<Run>(plan.block_pixels * plan.threads);
  job.partials = carver.take<float>(plan.part_floats *
                                    (plan.pixel_parts == 1 ? plan.unit_parts : plan.pixel_parts));
  job.buffers = carver.take<float>(plan.buffer_floats * plan.threads);
  return carver.bytes();
}

std::int64_t largest_share(std::int64_t count, std::int64_t parts) {
  return (count + parts - 1) / parts;
}

// The grid that finishes first, in multiply-adds: the largest share of the work, and about ten for
// each partial sum that has to be added up, which is memory traffic.
void choose_grid(WeightsPlan& plan) {
  const Geometry& g = plan.geometry;
  const std::int64_t units = g.groups * plan.panels.count;
  const double gradients = static_cast<double>(g.groups * plan.panels.padded() * plan.depth);
  const double work = gradients * static_cast<double>(g.images * g.dst_h * g.dst_w);
  double best = 0;
  for (int parts = 1; parts <= plan.threads; ++parts) {
    if (plan.threads % parts != 0) continue;
    const int pixel_parts = plan.threads / parts;
    const double time = work * static_cast<double>(largest_share(units, parts)) /
                            static_cast<double>(units) *
                            static_cast<double>(largest_share(plan.bands.count, pixel_parts)) /
                            static_cast<double>(plan.bands.count) +
                        10.0 * gradients * (pixel_parts - 1);
    if (parts == 1 || time < best) {
      best = time;
      plan.unit_parts = parts;
      plan.pixel_parts = pixel_parts;
    }
  }
  plan.pixel_parts = static_cast<int>(std::min<std::int64_t>(plan.pixel_parts, plan.bands.count));
}

}  // namespace

WeightsPlan make_weights_plan(Geometry geometry, int threads) {
  WeightsPlan plan;
  plan.geometry = std::move(geometry);
  plan.threads = threads;
  const Geometry& g = plan.geometry;
  plan.panels = panels_for(g.dst_group());
  plan.depth = static_cast<std::int64_t>(g.phases[0].taps.size()) * g.src_group();
  const std::int64_t pixel_floats = g.src_channels * g.src_step_y * g.src_step_x + g.dst_channels;
  plan.bands =
      make_bands(g, std::clamp<std::int64_t>(kBandFloats / pixel_floats, 64, 512), 4 * threads);
  // Each row of the gradient walks over pixels. An even number of cache lines between them would
  // map the pixels of a block to a fraction of the first-level cache, so such a src is copied,
  // unless most of the copy would not be used.
  constexpr std::int64_t kLine = 16;
  if (g.src_channels % (2 * kLine) == 0 && (g.padded || g.src_step_y * g.src_step_x == 1)) {
    plan.bands.copied = true;
    plan.bands.pixel_pitch = g.src_channels + kLine;
  }
  plan.block_pixels = kPanelFloats / (plan.panels.widest() * plan.panels.lanes);
  choose_grid(plan);
  plan.unit_floats = plan.depth * plan.panels.widest() * plan.panels.lanes;
  plan.at_once = std::max<std::int64_t>(1, kPartialFloats / plan.unit_floats);
  const std::int64_t units = g.groups * plan.panels.count;
  plan.part_floats =
      plan.unit_floats * (plan.pixel_parts == 1 ? std::min(plan.at_once, units) : units);
  plan.buffer_floats = band_floats(plan.bands);
  WeightsJob job;
  plan.workspace_bytes = carve(plan, nullptr, job);
  return plan;
}

void run_weights(const WeightsPlan& plan, const Tensor& src, const Tensor& diff_dst,
                 float* diff_weights, std::byte* workspace) {
  const Geometry& g = plan.geometry;
  WeightsJob job;
  job.plan = &plan;
  job.layout = src_layout(g, plan.bands, src.strides);
  job.src = src.as<float>();
  job.diff_dst = diff_dst.as<float>();
  job.diff_weights = diff_weights;
  job.src_strides = src.strides;
  job.dst_strides = diff_dst.strides;
  carve(plan, workspace, job);
  std::int64_t* row = job.rows;
  for (const Tap& tap : g.phases[0].taps) {
    for (std::int64_t channel = 0; channel < g.src_group(); ++channel) {
      *row++ = job.layout.tap_offset(tap) + channel;
    }
  }

  const int shares = plan.unit_parts * plan.pixel_parts;
  parallel([&](int thread, int threads) {
    for (int share = thread; share < shares; share += threads) {
      HWY_DYNAMIC_DISPATCH(run_share)(job, share);
    }
  });
  if (plan.pixel_parts == 1) return;
  const std::int64_t pieces = (g.src_group() + kCombineChannels - 1) / kCombineChannels;
  parallel_for(g.groups * plan.panels.count * pieces, 8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t channel = item % pieces * kCombineChannels;
      HWY_DYNAMIC_DISPATCH(combine)
      (job, item / pieces, job.partials + item / pieces * plan.unit_floats, channel,
       std::min(channel + kCombineChannels, g.src_group()));
    }
  });
}

}  // namespace ridgeline::native::conv
#endif
