#include "backends/native/conv_winograd.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "backends/native/row_space.h"
#include "base/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/native/conv_winograd.cpp"
#include "base/simd_targets.h"
// The targets come first.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/native/activation-inl.h"
#include "backends/native/conv_tile-inl.h"
#include "backends/native/winograd_transform-inl.h"

#ifndef RIDGELINE_NATIVE_CONV_WINOGRAD_JOB
#define RIDGELINE_NATIVE_CONV_WINOGRAD_JOB
namespace ridgeline::native::conv {
namespace {

// One run: the plan, the tensors, and what lies in the workspace.
struct WinogradJob {
  const WinogradPlan* plan = nullptr;
  const float* src = nullptr;
  const float* weights = nullptr;
  float* dst = nullptr;
  Strides src_strides{}, dst_strides{};
  Epilogue epilogue;
  float* points = nullptr;  // of src: [point][tile][channel], of all tiles or of each thread
  float* sums = nullptr;    // [point][tile][dst channel of the panel], of each thread
  // Weights: [panel][block of the depth][point][src channel][dst channel of the panel], or one such
  // block of each thread.
  float* packed = nullptr;
  float* zeros = nullptr;  // a pixel of padding

  // Channels of src, and floats from point to point. Points do not lie a power of two apart: their
  // lines would fall into the same few sets of the cache.
  [[nodiscard]] std::int64_t src_pitch() const {
    return (plan->geometry.src_channels + 15) / 16 * 16;
  }
  [[nodiscard]] std::int64_t src_point(std::int64_t tiles) const {
    return tiles * src_pitch() + 16;
  }
  [[nodiscard]] std::int64_t sum_point() const { return (plan->block + 7) * width() + 16; }
  [[nodiscard]] std::int64_t weight_point() const { return plan->depth_block * width() + 16; }
  [[nodiscard]] std::int64_t width() const { return plan->panels.widest() * plan->panels.lanes; }
};

}  // namespace
}  // namespace ridgeline::native::conv
#endif

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native::conv::HWY_NAMESPACE {
namespace {

using Wide = hn::ScalableTag<float>;

// Weights of `count` src channels from `first_src` on for one vector of dst channels of a panel.
template <class D>
void pack_vector(const WinogradJob& job, std::int64_t panel, std::int64_t vector,
                 std::int64_t first_src, std::int64_t count, float* to) {
  using V = hn::Vec<D>;
  const D d;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  const WinogradPlan& plan = *job.plan;
  const Geometry& g = plan.geometry;
  const std::int64_t width = plan.panels.vectors_of(panel) * kLanes, pitch = job.weight_point();
  const std::int64_t channel = (plan.panels.first_vector(panel) + vector) * kLanes;
  const std::int64_t used = std::min(kLanes, g.dst_channels - channel);
  std::int64_t kernel[9];
  for (std::size_t tap = 0; tap < 9; ++tap) kernel[tap] = g.phases[0].taps[tap].kernel;
  HWY_ALIGN float taps[9][kLanes] = {};
  const auto transform = [&](const V(&x)[3], V(&y)[6]) HWY_ATTR { weight_points(d, x, y); };
  to += vector * kLanes;
  for (std::int64_t c = 0; c < count; ++c, to += width) {
    const float* from = job.weights + channel * g.weights.out + (first_src + c) * g.weights.in;
    for (std::int64_t lane = 0; lane < used; ++lane, from += g.weights.out) {
#pragma GCC unroll 9
      for (int tap = 0; tap < 9; ++tap) taps[tap][lane] = from[kernel[tap]];
    }
    transform_tile<3, 6>(
        d, transform, [&](int i, int j) HWY_ATTR { return hn::Load(d, taps[i * 3 + j]); },
        [&](int i, int j, V v) HWY_ATTR {
          hn::StoreU(hn::Mul(v, hn::Set(d, weight_scale(i, j))), d, to + (i * kTileIn + j) * pitch);
        });
  }
}

void pack_weights(const WinogradJob& job, std::int64_t panel, std::int64_t vector,
                  std::int64_t first_src, std::int64_t count, float* to) {
  if constexpr (hn::MaxLanes(Wide()) > 8) {
    if (job.plan->panels.lanes == 8) {
      using Narrow = hn::CappedTag<float, 8>;
      return pack_vector<Narrow>(job, panel, vector, first_src, count, to);
    }
  }
  pack_vector<Wide>(job, panel, vector, first_src, count, to);
}

// Transforms tiles [begin, end) of src; tile `begin` goes to `to`, points lie `pitch` apart.
void transform_src(const WinogradJob& job, std::int64_t begin, std::int64_t end, float* to,
                   std::int64_t pitch) {
  const Geometry& g = job.plan->geometry;
  const Wide d;
  const auto transform = [&](const hn::Vec<Wide>(&x)[6], hn::Vec<Wide>(&y)[6])
                             HWY_ATTR { src_points(d, x, y); };
  for (std::int64_t tile = begin; tile < end; ++tile, to += job.src_pitch()) {
    const TilePlace place = place_of(job.plan->grid, tile);
    const TilePixels<kTileIn> pixels(job.src + place.image * job.src_strides[0], job.src_strides,
                                     place.y + g.dy_min, place.x + g.dx_min, g.src_h, g.src_w,
                                     job.zeros);
    transform_pixels<kTileIn>(d, pixels, g.src_channels, transform, to, pitch);
  }
}

// One panel of dst channels of a block of tiles.
struct PanelTiles {
  const float* points = nullptr;  // of src, of the block's first tile
  std::int64_t point_pitch = 0;
  float* sums = nullptr;
  float* late = nullptr;                         // where to pack a block of weights late
  std::int64_t panel = 0, first = 0, count = 0;  // tiles
};

// Products that are added up in registers before they are added to the sums of their block, for
// errors grow with the length of such a chain: 12 bring them down to 3 times those of dense sums.
constexpr std::int64_t kChain = 12;

// 36 products of matrices: tiles x src channels of one block times src channels x dst channels.
template <class D, int kVectors>
HWY_NOINLINE void multiply(const WinogradJob& job, const PanelTiles& call, const Run& run,
                           const float* packed) {
  using T = Tile<D, kVectors>;
  using V = hn::Vec<D>;
  using Weights = PackedVectors<D, kVectors>;
  const D d;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  const std::int64_t pitch = job.src_pitch();
  const bool first = run.rows == 0;
  for (std::int64_t point = 0; point < kTileProducts; ++point) {
    const float* points = call.points + point * call.point_pitch;
    float* to = call.sums + point * job.sum_point();
    const float* weights = packed + point * job.weight_point();
    for (std::int64_t tile = 0; tile < call.count; tile += T::kRows) {
      // Rows past the end repeat the last tile.
      const float* row[T::kRows];
#pragma GCC unroll 8
      for (int r = 0; r < T::kRows; ++r) {
        row[r] = points + std::min(tile + r, call.count - 1) * pitch;
      }
      V totals[T::kRows][kVectors];
#pragma GCC unroll 8
      for (auto& row_of_sums : totals) {
#pragma GCC unroll 4
        for (V& total : row_of_sums) total = hn::Zero(d);
      }
      for (std::int64_t done = 0; done < run.count; done += kChain) {
        const Run chain{run.rows + done, 0, std::min(kChain, run.count - done)};
        T sums;
        sums.accumulate(row, &chain, 1, Weights{weights + done * Weights::kStep});
#pragma GCC unroll 8
        for (int r = 0; r < T::kRows; ++r) {
#pragma GCC unroll 4
          for (int v = 0; v < kVectors; ++v) {
            totals[r][v] = hn::Add(totals[r][v], sums.sums[r][v]);
          }
        }
      }
#pragma GCC unroll 8
      for (int r = 0; r < T::kRows; ++r) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v, to += kLanes) {
          if (!first) totals[r][v] = hn::Add(totals[r][v], hn::LoadU(d, to));
          hn::StoreU(totals[r][v], d, to);
        }
      }
    }
  }
}

// Back to dst pixels, with bias and activation.
template <class D>
HWY_NOINLINE void finish(const WinogradJob& job, const PanelTiles& call) {
  using V = hn::Vec<D>;
  const D d;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  const WinogradPlan& plan = *job.plan;
  const Geometry& g = plan.geometry;
  const std::int64_t vectors = plan.panels.vectors_of(call.panel), width = vectors * kLanes;
  const std::int64_t channel = plan.panels.first_vector(call.panel) * kLanes;
  const Epilogue& epilogue = job.epilogue;
  const bool relu = epilogue.activate && epilogue.activation == ActivationKind::relu;
  const V least = hn::Set(d, relu ? 0.0F : -std::numeric_limits<float>::infinity());
  const auto transform = [&](const V(&x)[6], V(&y)[4]) HWY_ATTR { dst_numbers(d, x, y); };
  for (std::int64_t tile = 0; tile < call.count; ++tile) {
    const TilePlace place = place_of(plan.grid, call.first + tile);
    const std::int64_t rows = std::min(kTileOut, g.dst_h - place.y);
    const std::int64_t cols = std::min(kTileOut, g.dst_w - place.x);
    float* dst = job.dst + place.image * job.dst_strides[0] + place.y * job.dst_strides[2] +
                 place.x * job.dst_strides[3] + channel;
    for (std::int64_t vector = 0; vector < vectors; ++vector) {
      const std::int64_t at = vector * kLanes;
      const std::int64_t used = std::min(kLanes, g.dst_channels - channel - at);
      const FirstLanes<D> some{used};
      const bool whole = used == kLanes;
      const float* bias = epilogue.bias == nullptr ? nullptr : epilogue.bias + channel + at;
      const V added = bias == nullptr ? hn::Zero(d) : whole ? hn::LoadU(d, bias) : some.load(bias);
      const float* from = call.sums + tile * width + at;
      const auto load = [&](int i, int j) HWY_ATTR {
        return hn::LoadU(d, from + (i * kTileIn + j) * job.sum_point());
      };
      transform_tile<6, 4>(d, transform, load, [&](int i, int j, V v) HWY_ATTR {
        if (i >= rows || j >= cols) return;
        float* to = dst + i * job.dst_strides[2] + j * job.dst_strides[3] + at;
        const V result = hn::Max(least, hn::Add(v, added));
        if (whole) {
          hn::StoreU(result, d, to);
        } else {
          some.store(result, to);
        }
      });
    }
    if (!epilogue.activate || relu) continue;
    native::HWY_NAMESPACE::with_activation(
        epilogue.activation, epilogue.slope, [&](auto activation) HWY_ATTR {
          const std::int64_t channels = std::min(width, g.dst_channels - channel);
          for (std::int64_t i = 0; i < rows; ++i) {
            for (std::int64_t j = 0; j < cols; ++j) {
              float* pixel = dst + i * job.dst_strides[2] + j * job.dst_strides[3];
              native::HWY_NAMESPACE::for_lanes(
                  d, channels, [&](auto lanes, std::int64_t c) HWY_ATTR {
                    lanes.store(activation.forward(d, lanes.load(pixel + c)), pixel + c);
                  });
            }
          }
        });
  }
}

template <class D, int kVectors>
void run_panel(const WinogradJob& job, const PanelTiles& call) {
  const WinogradPlan& plan = *job.plan;
  const std::int64_t channels = plan.geometry.src_channels;
  for (std::int64_t b = 0; b < plan.depth_blocks; ++b) {
    const std::int64_t begin = b * plan.depth_block;
    const Run run{begin, 0, std::min(plan.depth_block, channels - begin)};
    const float* weights =
        job.packed + (call.panel * plan.depth_blocks + b) * kTileProducts * job.weight_point();
    if (plan.late) {
      for (int vector = 0; vector < kVectors; ++vector) {
        pack_vector<D>(job, call.panel, vector, begin, run.count, call.late);
      }
      weights = call.late;
    }
    multiply<D, kVectors>(job, call, run, weights);
  }
  finish<D>(job, call);
}

void run_panel_of(const WinogradJob& job, const PanelTiles& call) {
  const std::int64_t vectors = job.plan->panels.vectors_of(call.panel);
  if constexpr (hn::MaxLanes(Wide()) > 8) {
    using Narrow = hn::CappedTag<float, 8>;
    if (job.plan->panels.lanes == 8 && vectors == 1) return run_panel<Narrow, 1>(job, call);
    if (job.plan->panels.lanes == 8) return run_panel<Narrow, 2>(job, call);
  }
  if (vectors == 1) return run_panel<Wide, 1>(job, call);
  if (vectors == 2) return run_panel<Wide, 2>(job, call);
  if constexpr (kMaxVectors == 4) {
    if (vectors == 3) return run_panel<Wide, 3>(job, call);
    run_panel<Wide, 4>(job, call);
  }
}

// The items of one thread: blocks of tiles, or pairs of a panel and a block of shared tiles.
void run_share(const WinogradJob& job, int share) {
  const WinogradPlan& plan = *job.plan;
  const Panels& panels = plan.panels;
  PanelTiles call;
  call.sums = job.sums + share * plan.sum_floats;
  call.late = job.packed + share * kTileProducts * job.weight_point();
  call.point_pitch = job.src_point(plan.late ? plan.grid.count() : plan.block);
  const auto enter = [&](std::int64_t block) {
    call.first = block * plan.block;
    call.count = std::min(plan.block, plan.grid.count() - call.first);
  };
  if (plan.late) {
    const Range items = share_of(plan.blocks * panels.count, share, plan.threads);
    for (std::int64_t item = items.begin; item < items.end; ++item) {
      enter(item % plan.blocks);
      call.points = job.points + call.first * job.src_pitch();
      call.panel = item / plan.blocks;
      run_panel_of(job, call);
    }
    return;
  }
  float* points = job.points + share * plan.src_floats;
  call.points = points;
  const Range items = share_of(plan.blocks, share, plan.threads);
  for (std::int64_t block = items.begin; block < items.end; ++block) {
    enter(block);
    transform_src(job, call.first, call.first + call.count, points, call.point_pitch);
    for (call.panel = 0; call.panel < panels.count; ++call.panel) run_panel_of(job, call);
  }
}

}  // namespace
}  // namespace ridgeline::native::conv::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::native::conv {
namespace {

HWY_EXPORT(pack_weights);
HWY_EXPORT(transform_src);
HWY_EXPORT(run_share);

// Src channels whose weights are transformed together: a few rows of plain weights fit the
// first-level cache.
constexpr std::int64_t kPackChannels = 8;
// From so many pairs of channels on, transformed weights do not fit the second-level cache: longer
// blocks use them more often. With few tiles they are better made where they are used.
constexpr std::int64_t kManyWeights = 128 * 128;
constexpr std::int64_t kShortBlock = 24, kLongBlock = 64, kLateTiles = 128;
// What is faster than dense products, as measured; docs/kernels/native-winograd.md has the figures.
constexpr std::int64_t kLeastChannels = 16, kLeastTiles = 16;

std::size_t carve(const WinogradPlan& plan, std::byte* workspace, WinogradJob& job) {
  Carver carver(workspace);
  job.points = carver.take<float>(plan.src_floats * (plan.late ? 1 : plan.threads));
  job.sums = carver.take<float>(plan.sum_floats * plan.threads);
  job.packed = carver.take<float>(plan.weight_floats);
  job.zeros = carver.take<float>(job.src_pitch());
  return carver.bytes();
}

void pack_early(const WinogradJob& job) {
  const WinogradPlan& plan = *job.plan;
  const std::int64_t channels = plan.geometry.src_channels, vectors = plan.panels.widest();
  const std::int64_t pieces = (channels + kPackChannels - 1) / kPackChannels;
  parallel_for(plan.panels.count * vectors * pieces, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t item = begin; item < end; ++item) {
      const std::int64_t panel = item / pieces / vectors, vector = item / pieces % vectors;
      if (vector >= plan.panels.vectors_of(panel)) continue;
      const std::int64_t last = std::min((item % pieces + 1) * kPackChannels, channels);
      for (std::int64_t c = item % pieces * kPackChannels; c < last;) {
        const std::int64_t block = c / plan.depth_block, inside = c % plan.depth_block;
        const std::int64_t count = std::min(last - c, plan.depth_block - inside);
        float* to = job.packed +
                    (panel * plan.depth_blocks + block) * kTileProducts * job.weight_point() +
                    inside * plan.panels.vectors_of(panel) * plan.panels.lanes;
        HWY_DYNAMIC_DISPATCH(pack_weights)(job, panel, vector, c, count, to);
        c += count;
      }
    }
  });
}

}  // namespace

TileGrid tile_grid(std::int64_t images, std::int64_t height, std::int64_t width) {
  return {images, (height + kTileOut - 1) / kTileOut, (width + kTileOut - 1) / kTileOut};
}

TilePlace place_of(const TileGrid& grid, std::int64_t tile) {
  const std::int64_t in_image = tile % (grid.rows * grid.cols);
  return {tile / (grid.rows * grid.cols), in_image / grid.cols * kTileOut,
          in_image % grid.cols * kTileOut};
}

std::string refuse_winograd(const Geometry& g, double most_products) {
  const bool steps =
      g.src_step_y == 1 && g.src_step_x == 1 && g.dst_step_y == 1 && g.dst_step_x == 1;
  const bool taps = g.phases.size() == 1 && g.phases[0].taps.size() == 9 &&
                    g.dy_max - g.dy_min == 2 && g.dx_max - g.dx_min == 2;
  if (!steps || !taps || g.groups != 1) return "not 3 x 3 with stride 1, without groups";
  const TileGrid grid = tile_grid(g.images, g.dst_h, g.dst_w);
  if (std::min(g.src_channels, g.dst_channels) < kLeastChannels) return "too few channels";
  if (grid.count() < kLeastTiles) return "too few tiles";
  const auto pixels = static_cast<double>(g.dst_h * g.dst_w * 9);
  if (static_cast<double>(grid.rows * grid.cols * kTileProducts) > most_products * pixels) {
    return "tiles stand too far over the edges";
  }
  return {};
}

// Multiplications and additions of one transform of so many numbers, by winograd_transform-inl.h.
double winograd_flop_factor(const Geometry& g) {
  constexpr double kSrc = 12 * 24, kDst = 10 * 17, kWeights = 9 * 12 + 36;
  const auto tiles = static_cast<double>(tile_grid(g.images, g.dst_h, g.dst_w).count());
  const auto src = static_cast<double>(g.src_channels), dst = static_cast<double>(g.dst_channels);
  const double executed =
      tiles * (2.0 * kTileProducts * src * dst + kSrc * src + kDst * dst) + kWeights * src * dst;
  return executed / (2.0 * 9 * static_cast<double>(g.images * g.dst_h * g.dst_w) * src * dst);
}

WinogradPlan make_winograd_plan(Geometry geometry, int threads) {
  WinogradPlan plan;
  plan.geometry = std::move(geometry);
  plan.threads = threads;
  const Geometry& g = plan.geometry;
  plan.grid = tile_grid(g.images, g.dst_h, g.dst_w);
  plan.panels = panels_for(g.dst_channels);
  const std::int64_t width = plan.panels.widest() * plan.panels.lanes;
  const std::int64_t tiles = plan.grid.count(), weights = g.src_channels * g.dst_channels;
  plan.late = tiles <= kLateTiles && weights >= kManyWeights;
  // The panels alone must keep all threads busy when weights are transformed late.
  std::int64_t block = plan.late ? tiles : weights > kManyWeights ? kLongBlock : kShortBlock;
  const std::int64_t least =
      plan.late ? (threads + plan.panels.count - 1) / plan.panels.count : std::int64_t{threads};
  block = std::max<std::int64_t>(std::min(block, tiles / least), 1);
  plan.blocks = (tiles + block - 1) / block;
  // Even cuts, and as many for each thread.
  if (!plan.late) plan.blocks = (plan.blocks + threads - 1) / threads * threads;
  plan.block = (tiles + plan.blocks - 1) / plan.blocks;
  plan.blocks = (tiles + plan.block - 1) / plan.block;
  const std::int64_t most_depth = kPanelFloats / width;
  plan.depth_blocks = (g.src_channels + most_depth - 1) / most_depth;
  plan.depth_block = (g.src_channels + plan.depth_blocks - 1) / plan.depth_blocks;

  WinogradJob job;
  job.plan = &plan;
  plan.src_floats = kTileProducts * job.src_point(plan.late ? tiles : plan.block);
  plan.sum_floats = kTileProducts * job.sum_point();
  plan.weight_floats = kTileProducts * job.weight_point() *
                       (plan.late ? threads : plan.panels.count * plan.depth_blocks);
  plan.workspace_bytes = carve(plan, nullptr, job);
  return plan;
}

void run_winograd(const WinogradPlan& plan, const Tensor& src, const float* weights,
                  const Tensor& dst, const Epilogue& epilogue, std::byte* workspace) {
  WinogradJob job;
  job.plan = &plan;
  job.src = src.as<float>();
  job.weights = weights;
  job.dst = dst.as<float>();
  job.src_strides = src.strides;
  job.dst_strides = dst.strides;
  job.epilogue = epilogue;
  carve(plan, workspace, job);
  std::fill_n(job.zeros, job.src_pitch(), 0.0F);

  if (plan.late) {
    parallel_for(plan.grid.count(), 1, [&](std::int64_t begin, std::int64_t end) {
      HWY_DYNAMIC_DISPATCH(transform_src)
      (job, begin, end, job.points + begin * job.src_pitch(), job.src_point(plan.grid.count()));
    });
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
