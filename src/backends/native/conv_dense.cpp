#include "backends/native/conv_dense.h"

#include <algorithm>
#include <utility>

#include "backends/native/conv_dense_job.h"
#include "base/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/native/conv_dense.cpp"
#include "base/simd_targets.h"
// The targets come first.
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/native/activation-inl.h"
#include "backends/native/conv_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native::conv::HWY_NAMESPACE {
namespace {

// Plain weights of one tap to vectors of dst channels, one for each src channel, `width` apart.
HWY_INLINE void pack_tap(const float* from, const WeightStrides& strides, std::int64_t channels,
                         std::int64_t used, std::int64_t lanes, std::int64_t width, float* to) {
  for (std::int64_t channel = 0; channel < channels; ++channel) {
    std::int64_t lane = 0;
    for (; lane < used; ++lane) to[lane] = from[lane * strides.out];
    for (; lane < lanes; ++lane) to[lane] = 0.0F;
    from += strides.in;
    to += width;
  }
}

// Some src channels of one panel: tap t goes to packed + t * tap_step. A vector of dst channels at
// a time: rows of weights often lie a power of two apart, and more of them would fall into the same
// few sets of the cache.
void pack_panel(const DenseJob& job, const Phase& phase, std::int64_t unit, std::int64_t channel,
                std::int64_t channels, float* packed, std::int64_t tap_step) {
  const Geometry& g = job.plan->geometry;
  const Panels& panels = job.plan->panels;
  const std::int64_t group = unit / panels.count, panel = unit % panels.count;
  const std::int64_t first = panels.first_vector(panel) * panels.lanes;
  const std::int64_t width = panels.vectors_of(panel) * panels.lanes;
  for (std::int64_t vector = 0; vector < width; vector += panels.lanes) {
    const std::int64_t used =
        std::clamp<std::int64_t>(panels.channels - first - vector, 0, panels.lanes);
    const float* from = job.weights + group * g.weights.group + (first + vector) * g.weights.out +
                        channel * g.weights.in;
    float* to = packed + vector;
    for (const Tap& tap : phase.taps) {
      pack_tap(from + tap.kernel, g.weights, channels, used, panels.lanes, width, to);
      to += tap_step;
    }
  }
}

// Asks for the plain weights of a block that is packed soon.
void prefetch_panel(const DenseJob& job, std::int64_t unit, const Block& block) {
  const Geometry& g = job.plan->geometry;
  const Panels& panels = job.plan->panels;
  const std::int64_t group = unit / panels.count, panel = unit % panels.count;
  const std::int64_t first = panels.first_vector(panel) * panels.lanes;
  const std::int64_t channels =
      std::min(panels.vectors_of(panel) * panels.lanes, panels.channels - first);
  const float* from = job.weights + group * g.weights.group + first * g.weights.out +
                      block.first_channel * g.weights.in;
  const bool out_rows = g.weights.out > g.weights.in;
  const std::int64_t rows = out_rows ? channels : block.channels;
  const std::int64_t row_step = out_rows ? g.weights.out : g.weights.in;
  const std::int64_t length = out_rows ? block.channels * g.weights.in : channels * g.weights.out;
  constexpr std::int64_t kLine = 16;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t at = 0; at < length; at += kLine) {
      hwy::Prefetch(from + row * row_step + at);
    }
  }
}

// Packs some src channels of one group for all panels, ahead of everything else.
void pack_channels(const DenseJob& job, std::size_t phase_index, std::int64_t group,
                   std::int64_t begin, std::int64_t end) {
  const DensePlan& plan = *job.plan;
  const Panels& panels = plan.panels;
  const DensePlan::PhasePlan& phase = plan.phases[phase_index];
  for (std::int64_t panel = 0; panel < panels.count; ++panel) {
    const std::int64_t first = panels.first_vector(panel) * panels.lanes;
    const std::int64_t width = panels.vectors_of(panel) * panels.lanes;
    pack_panel(
        job, plan.geometry.phases[phase_index], group * panels.count + panel, begin, end - begin,
        job.packed + phase.packed + phase.depth * (group * panels.padded() + first) + begin * width,
        plan.geometry.src_group() * width);
  }
}

// One panel of dst channels of one phase over the pixels of a band.
struct PanelCall {
  const Phase* phase = nullptr;
  std::int64_t unit = 0;           // group and panel
  const float* weights = nullptr;  // packed early, of the panel
  float* late = nullptr;           // where to pack a block late
  const float* src = nullptr;      // of the band and group
  float* dst = nullptr;            // of the band and panel
  const float* bias = nullptr;
  const Block* blocks = nullptr;
  std::int64_t block_count = 0;
  const Pixel* pixels = nullptr;
  std::int64_t pixel_count = 0, tail = 0;
};

template <class D, int kVectors>
HWY_NOINLINE void activate_tile(const Epilogue& epilogue, const PanelCall& call,
                                const Pixel* pixels, int rows) {
  const D d;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  native::HWY_NAMESPACE::with_activation(
      epilogue.activation, epilogue.slope, [&](auto activation) HWY_ATTR {
        for (int r = 0; r < rows; ++r) {
          float* at = call.dst + pixels[r].dst;
          for (int v = 0; v < kVectors; ++v, at += kLanes) {
            const FirstLanes<D> lanes{v < kVectors - 1 ? kLanes : call.tail};
            lanes.store(activation.forward(d, lanes.load(at)), at);
          }
        }
      });
}

// kWhole: all rows of the tile are pixels, so `rows` need not be looked at.
template <bool kWhole, class D, int kVectors>
HWY_INLINE void finish_tile(Tile<D, kVectors>& tile, const DenseJob& job, const PanelCall& call,
                            const Pixel* pixels, int rows, bool first, bool last) {
  using T = Tile<D, kVectors>;
  const D d;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  const bool whole = call.tail == kLanes;
  const auto load = [&](const float* from, int v) HWY_ATTR {
    return v < kVectors - 1 || whole ? hn::LoadU(d, from + v * kLanes)
                                     : FirstLanes<D>{call.tail}.load(from + v * kLanes);
  };
  auto& sums = tile.sums;
  if (!first) {
#pragma GCC unroll 8
    for (int r = 0; r < T::kRows; ++r) {
      if (!kWhole && r >= rows) break;
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        sums[r][v] = hn::Add(sums[r][v], load(call.dst + pixels[r].dst, v));
      }
    }
  }
  if (last && call.bias != nullptr) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const auto bias = load(call.bias, v);
#pragma GCC unroll 8
      for (int r = 0; r < T::kRows; ++r) sums[r][v] = hn::Add(sums[r][v], bias);
    }
  }
  const bool activate = last && job.epilogue.activate;
  const bool relu = activate && job.epilogue.activation == ActivationKind::relu;
  if (relu) {
#pragma GCC unroll 8
    for (int r = 0; r < T::kRows; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Max(hn::Zero(d), sums[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < T::kRows; ++r) {
    if (!kWhole && r >= rows) break;
    float* to = call.dst + pixels[r].dst;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      if (v < kVectors - 1 || whole) {
        hn::StoreU(sums[r][v], d, to + v * kLanes);
      } else {
        FirstLanes<D>{call.tail}.store(sums[r][v], to + v * kLanes);
      }
    }
  }
  // The rarer activations in a loop of their own: unrolled over the tile they would be much code.
  if (activate && !relu) activate_tile<D, kVectors>(job.epilogue, call, pixels, rows);
}

template <int kCount, class D, int kVectors>
HWY_INLINE void run_block(const DenseJob& job, const PanelCall& call, std::int64_t b,
                          const float* packed) {
  using T = Tile<D, kVectors>;
  using Weights = PackedVectors<D, kVectors>;
  const Block& block = call.blocks[b];
  const Weights weights{packed};
  const Run* runs = job.runs + block.first_run;
  const bool first = b == 0, last = b + 1 == call.block_count;
  T tile;
  const float* row[T::kRows];
  std::int64_t p = 0;
  for (; p + T::kRows <= call.pixel_count; p += T::kRows) {
    const Pixel* pixels = call.pixels + p;
#pragma GCC unroll 8
    for (int r = 0; r < T::kRows; ++r) row[r] = call.src + pixels[r].src;
    tile.template accumulate<kCount>(row, runs, block.runs, weights);
    finish_tile<true>(tile, job, call, pixels, T::kRows, first, last);
  }
  if (p < call.pixel_count) {
    // Rows past the end repeat the last pixel and are not stored.
    const Pixel* pixels = call.pixels + p;
    const int rows = static_cast<int>(call.pixel_count - p);
    for (int r = 0; r < T::kRows; ++r) row[r] = call.src + pixels[std::min(r, rows - 1)].src;
    tile.template accumulate<kCount>(row, runs, block.runs, weights);
    finish_tile<false>(tile, job, call, pixels, rows, first, last);
  }
}

template <class D, int kVectors>
HWY_NOINLINE void run_panel(const DenseJob& job, const PanelCall& call) {
  constexpr std::int64_t kWidth = PackedVectors<D, kVectors>::kStep;
  for (std::int64_t b = 0; b < call.block_count; ++b) {
    const Block& block = call.blocks[b];
    const float* weights = call.weights + block.depth * kWidth;
    if (call.late != nullptr) {
      pack_panel(job, *call.phase, call.unit, block.first_channel, block.channels, call.late,
                 block.channels * kWidth);
      if (b + 1 < call.block_count) prefetch_panel(job, call.unit, call.blocks[b + 1]);
      weights = call.late;
    }
    if constexpr (kVectors == 1) {
      if (block.run_length == 3) {
        run_block<3, D, kVectors>(job, call, b, weights);
        continue;
      }
    }
    run_block<0, D, kVectors>(job, call, b, weights);
  }
}

template <class D>
void run_panel_of(std::int64_t vectors, const DenseJob& job, const PanelCall& call) {
  switch (vectors) {
    case 1:
      return run_panel<D, 1>(job, call);
    case 2:
      return run_panel<D, 2>(job, call);
  }
  if constexpr (kMaxVectors == 4) {
    if (vectors == 3) return run_panel<D, 3>(job, call);
    return run_panel<D, 4>(job, call);
  }
}

void run_unit(const DenseJob& job, int share, const Band& band, const float* src,
              std::size_t phase_index, std::int64_t unit) {
  const DensePlan& plan = *job.plan;
  const Geometry& g = plan.geometry;
  const Panels& panels = plan.panels;
  const Phase& phase = g.phases[phase_index];
  const DensePlan::PhasePlan& plan_of = plan.phases[phase_index];
  const std::int64_t rows = std::min(band.rows, phase.rows - band.row);
  if (rows <= 0) return;

  const std::int64_t group = unit / panels.count, panel = unit % panels.count;
  const std::int64_t channel = group * g.dst_group() + panels.first_vector(panel) * panels.lanes;
  PanelCall call;
  call.phase = &phase;
  call.unit = unit;
  if (plan.late) {
    call.late = job.packed + share * plan.late_floats;
  } else {
    call.weights =
        job.packed + plan_of.packed +
        plan_of.depth * (group * panels.padded() + panels.first_vector(panel) * panels.lanes);
  }
  call.src = src + group * g.src_group();
  call.dst = job.dst + band.image * job.dst_strides[0] +
             band.row * g.dst_step_y * job.dst_strides[2] + channel;
  call.bias = job.epilogue.bias == nullptr ? nullptr : job.epilogue.bias + channel;
  call.blocks = job.blocks + plan_of.first_block;
  call.block_count = plan_of.blocks;
  call.pixels = job.pixels + plan_of.first_pixel;
  call.pixel_count = band.images * rows * phase.cols;
  call.tail = panels.tail_of(panel);

  const std::int64_t vectors = panels.vectors_of(panel);
  if constexpr (hn::MaxLanes(hn::ScalableTag<float>()) > 8) {
    using Narrow = hn::CappedTag<float, 8>;
    if (panels.lanes == 8 && vectors == 1) return run_panel<Narrow, 1>(job, call);
    if (panels.lanes == 8) return run_panel<Narrow, 2>(job, call);
  }
  run_panel_of<hn::ScalableTag<float>>(vectors, job, call);
}

// The items of one thread: pairs of a band and a piece of the dst channels, band by band.
void run_share(const DenseJob& job, int share) {
  const DensePlan& plan = *job.plan;
  const std::int64_t units = plan.geometry.groups * plan.panels.count;
  const Range range = share_of(plan.bands.count * plan.chunks, share, plan.threads);
  std::int64_t placed = -1;
  const float* src = nullptr;
  for (std::int64_t item = range.begin; item < range.end; ++item) {
    const std::int64_t index = item / plan.chunks;
    const Band band = band_at(plan.geometry, plan.bands, index);
    if (plan.late && plan.bands.copied) {
      src = job.buffers + index * plan.buffer_floats;
    } else if (index != placed) {
      src = place_band(plan.geometry, plan.bands, job.layout, band, job.src, job.src_strides,
                       job.buffers + share * plan.buffer_floats);
      placed = index;
    }
    const Range chunk =
        share_of(units, static_cast<int>(item % plan.chunks), static_cast<int>(plan.chunks));
    for (std::size_t phase = 0; phase < plan.phases.size(); ++phase) {
      for (std::int64_t unit = chunk.begin; unit < chunk.end; ++unit) {
        run_unit(job, share, band, src, phase, unit);
      }
    }
  }
}

Panels panels_of(std::int64_t channels) {
  return make_panels(channels, hn::MaxLanes(hn::ScalableTag<float>()), kMaxVectors);
}

}  // namespace
}  // namespace ridgeline::native::conv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::native::conv {
namespace {

HWY_EXPORT(run_share);
HWY_EXPORT(pack_channels);
HWY_EXPORT(panels_of);

// Src channels that are packed together: a few rows of the plain weights fit the first-level cache.
constexpr std::int64_t kPackChannels = 8;

void pack_early(const DenseJob& job) {
  const DensePlan& plan = *job.plan;
  const Geometry& g = plan.geometry;
  const std::int64_t pieces = (g.src_group() + kPackChannels - 1) / kPackChannels;
  const auto phases = static_cast<std::int64_t>(plan.phases.size());
  parallel_for(phases * g.groups * pieces, 8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t channel = item % pieces * kPackChannels;
      HWY_DYNAMIC_DISPATCH(pack_channels)
      (job, static_cast<std::size_t>(item / pieces / g.groups), item / pieces % g.groups, channel,
       std::min(channel + kPackChannels, g.src_group()));
    }
  });
}

// Copies all bands, image by image: threads that share a band share its copy.
void place_all(const DenseJob& job) {
  const DensePlan& plan = *job.plan;
  if (!plan.bands.copied) return;
  parallel_for(plan.bands.count * plan.bands.images, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t index = item / plan.bands.images, image = item % plan.bands.images;
      Band band = band_at(plan.geometry, plan.bands, index);
      if (image >= band.images) continue;
      band.image += image;
      band.images = 1;
      static_cast<void>(
          place_band(plan.geometry, plan.bands, job.layout, band, job.src, job.src_strides,
                     job.buffers + index * plan.buffer_floats + image * job.layout.image_pitch));
    }
  });
}

}  // namespace

Panels panels_for(std::int64_t channels) { return HWY_DYNAMIC_DISPATCH(panels_of)(channels); }

void run_dense(const DensePlan& plan, const Tensor& src, const float* weights, const Tensor& dst,
               const Epilogue& epilogue, std::byte* workspace) {
  const Geometry& g = plan.geometry;
  DenseJob job;
  job.plan = &plan;
  job.layout = src_layout(g, plan.bands, src.strides);
  job.src = src.as<float>();
  job.weights = weights;
  job.dst = dst.as<float>();
  job.src_strides = src.strides;
  job.dst_strides = dst.strides;
  job.epilogue = epilogue;
  carve(plan, workspace, job);
  list_work(job);
  if (plan.late) {
    place_all(job);
  } else {
    pack_early(job);
  }
  parallel([&](int thread, int threads) {
    for (int share = thread; share < plan.threads; share += threads) {
      HWY_DYNAMIC_DISPATCH(run_share)(job, share);
    }
  });
}

}  // namespace ridgeline::native::conv
#endif
