#include <algorithm>
#include <utility>

#include "backends/native/conv_winograd.h"
#include "backends/native/row_space.h"
#include "base/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/native/conv_winograd_weights.cpp"
#include "base/simd_targets.h"
// The targets come first.
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/native/conv_tile-inl.h"
#include "backends/native/winograd_transform-inl.h"

#ifndef RIDGELINE_NATIVE_CONV_WINOGRAD_WEIGHTS_JOB
#define RIDGELINE_NATIVE_CONV_WINOGRAD_WEIGHTS_JOB
namespace ridgeline::native::conv {
namespace {

// One run: the plan, the tensors, and what lies in the workspace. Points do not lie a power of two
// apart: their lines would fall into the same few sets of the cache.
struct WinogradWeightsJob {
  const WinogradWeightsPlan* plan = nullptr;
  const float* src = nullptr;
  const float* diff_dst = nullptr;
  float* diff_weights = nullptr;
  Strides src_strides{}, dst_strides{};
  float* src_points = nullptr;   // [point][tile][src channel], shared or of each thread
  float* diff_points = nullptr;  // [point][tile][dst channel]
  float* sums = nullptr;         // [point][src channel][dst channel]
  float* zeros = nullptr;        // a pixel of padding

  [[nodiscard]] std::int64_t src_pitch() const {
    return (plan->geometry.src_channels + 15) / 16 * 16;
  }
  [[nodiscard]] std::int64_t diff_pitch() const {
    return (plan->geometry.dst_channels + 15) / 16 * 16;
  }
  [[nodiscard]] std::int64_t src_point() const { return plan->block * src_pitch() + 16; }
  [[nodiscard]] std::int64_t diff_point() const { return plan->block * diff_pitch() + 16; }
  [[nodiscard]] std::int64_t sum_point() const {
    return plan->geometry.src_channels * diff_pitch() + 16;
  }
  [[nodiscard]] int copies() const { return plan->shared ? 1 : plan->threads; }
};

// Tiles that are multiplied at once: a panel of their diff_dst stays in the first-level cache.
constexpr std::int64_t kDepth = 96;
// Of these, how many are added up in registers before they are added to the sums of their panel.
constexpr std::int64_t kChain = 24;

}  // namespace
}  // namespace ridgeline::native::conv
#endif

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native::conv::HWY_NAMESPACE {
namespace {

using Wide = hn::ScalableTag<float>;

// Transforms tiles [begin, end) of src and diff_dst to places [place, ...) of a block.
void transform_both(const WinogradWeightsJob& job, std::int64_t begin, std::int64_t end,
                    float* src_points, float* diff_points_to) {
  const Geometry& g = job.plan->geometry;
  const Wide d;
  const auto of_src = [&](const hn::Vec<Wide>(&x)[6], hn::Vec<Wide>(&y)[6])
                          HWY_ATTR { conv::HWY_NAMESPACE::src_points(d, x, y); };
  const auto of_diff = [&](const hn::Vec<Wide>(&x)[4], hn::Vec<Wide>(&y)[6])
                           HWY_ATTR { diff_points(d, x, y); };
  for (std::int64_t tile = begin; tile < end; ++tile) {
    const TilePlace place = place_of(job.plan->grid, tile);
    const TilePixels<kTileIn> src(job.src + place.image * job.src_strides[0], job.src_strides,
                                  place.y + g.dy_min, place.x + g.dx_min, g.src_h, g.src_w,
                                  job.zeros);
    transform_pixels<kTileIn>(d, src, g.src_channels, of_src, src_points, job.src_point());
    const TilePixels<kTileOut> diff(job.diff_dst + place.image * job.dst_strides[0],
                                    job.dst_strides, place.y, place.x, g.dst_h, g.dst_w, job.zeros);
    transform_pixels<kTileOut>(d, diff, g.dst_channels, of_diff, diff_points_to, job.diff_point());
    src_points += job.src_pitch();
    diff_points_to += job.diff_pitch();
  }
}

// One point of one panel: adds src channels x dst channels over `tiles` tiles to the sums.
template <class D, int kVectors>
HWY_NOINLINE void multiply(const WinogradWeightsJob& job, std::int64_t channel, std::int64_t tiles,
                           const float* src, const float* diff, float* sums, bool first) {
  using T = Tile<D, kVectors>;
  using V = hn::Vec<D>;
  const D d;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  const std::int64_t channels = job.plan->geometry.src_channels;
  for (std::int64_t begin = 0; begin < tiles; begin += kDepth) {
    const std::int64_t end = std::min(begin + kDepth, tiles);
    const bool store = first && begin == 0;
    for (std::int64_t c = 0; c < channels; c += T::kRows) {
      V totals[T::kRows][kVectors];
#pragma GCC unroll 8
      for (auto& row_of_sums : totals) {
#pragma GCC unroll 4
        for (V& total : row_of_sums) total = hn::Zero(d);
      }
      for (std::int64_t done = begin; done < end; done += kChain) {
        // Rows past the end repeat the last channel and are not stored.
        const float* row[T::kRows];
#pragma GCC unroll 8
        for (int r = 0; r < T::kRows; ++r) {
          row[r] = src + done * job.src_pitch() + std::min(c + r, channels - 1);
        }
        const Run chain{0, 0, std::min(kChain, end - done)};
        T tile;
        tile.accumulate(
            row, &chain, 1,
            PixelVectors<D, kVectors, false>{diff + done * job.diff_pitch() + channel,
                                             job.diff_pitch(), job.src_pitch(), kLanes});
#pragma GCC unroll 8
        for (int r = 0; r < T::kRows; ++r) {
#pragma GCC unroll 4
          for (int v = 0; v < kVectors; ++v) totals[r][v] = hn::Add(totals[r][v], tile.sums[r][v]);
        }
      }
#pragma GCC unroll 8
      for (int r = 0; r < T::kRows; ++r) {
        if (c + r >= channels) break;
        float* to = sums + (c + r) * job.diff_pitch() + channel;
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v, to += kLanes) {
          if (!store) totals[r][v] = hn::Add(totals[r][v], hn::LoadU(d, to));
          hn::StoreU(totals[r][v], d, to);
        }
      }
    }
  }
}

// Item: a point and a panel.
void multiply_item(const WinogradWeightsJob& job, std::int64_t item, std::int64_t tiles,
                   const float* src_points, const float* diff_points_of, float* sums, bool first) {
  const Panels& panels = job.plan->panels;
  const std::int64_t point = item / panels.count, panel = item % panels.count;
  const std::int64_t vectors = panels.vectors_of(panel);
  const std::int64_t channel = panels.first_vector(panel) * panels.lanes;
  const float* src = src_points + point * job.src_point();
  const float* diff = diff_points_of + point * job.diff_point();
  float* to = sums + point * job.sum_point();
  if constexpr (hn::MaxLanes(Wide()) > 8) {
    using Narrow = hn::CappedTag<float, 8>;
    if (panels.lanes == 8 && vectors == 1) {
      return multiply<Narrow, 1>(job, channel, tiles, src, diff, to, first);
    }
    if (panels.lanes == 8) return multiply<Narrow, 2>(job, channel, tiles, src, diff, to, first);
  }
  if (vectors == 1) return multiply<Wide, 1>(job, channel, tiles, src, diff, to, first);
  if (vectors == 2) return multiply<Wide, 2>(job, channel, tiles, src, diff, to, first);
  if constexpr (kMaxVectors == 4) {
    if (vectors == 3) return multiply<Wide, 3>(job, channel, tiles, src, diff, to, first);
    multiply<Wide, 4>(job, channel, tiles, src, diff, to, first);
  }
}

// The blocks of one thread, with sums of its own.
void run_share(const WinogradWeightsJob& job, int share) {
  const WinogradWeightsPlan& plan = *job.plan;
  float* src = job.src_points + share * plan.src_floats;
  float* diff = job.diff_points + share * plan.diff_floats;
  float* sums = job.sums + share * plan.sum_floats;
  const Range range = share_of(plan.blocks, share, plan.threads);
  if (range.begin == range.end) std::fill_n(sums, plan.sum_floats, 0.0F);
  for (std::int64_t block = range.begin; block < range.end; ++block) {
    const std::int64_t begin = block * plan.block;
    const std::int64_t tiles = std::min(plan.block, plan.grid.count() - begin);
    transform_both(job, begin, begin + tiles, src, diff);
    for (std::int64_t item = 0; item < kTileProducts * plan.panels.count; ++item) {
      multiply_item(job, item, tiles, src, diff, sums, block == range.begin);
    }
  }
}

// Sums of all threads, in order, to the gradient: src channels [begin, end).
void finish(const WinogradWeightsJob& job, std::int64_t begin, std::int64_t end) {
  using V = hn::Vec<Wide>;
  const Wide d;
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(d));
  const WinogradWeightsPlan& plan = *job.plan;
  const Geometry& g = plan.geometry;
  const auto transform = [&](const V(&x)[6], V(&y)[3]) HWY_ATTR { weight_numbers(d, x, y); };
  HWY_ALIGN float taps[9][kLanes];
  for (std::int64_t o = 0; o < g.dst_channels; o += kLanes) {
    const std::int64_t used = std::min(kLanes, g.dst_channels - o);
    for (std::int64_t c = begin; c < end; ++c) {
      const float* from = job.sums + c * job.diff_pitch() + o;
      transform_tile<6, 3>(
          d, transform,
          [&](int i, int j) HWY_ATTR {
            const float* at = from + (i * kTileIn + j) * job.sum_point();
            V sum = hn::LoadU(d, at);
            for (int copy = 1; copy < job.copies(); ++copy) {
              sum = hn::Add(sum, hn::LoadU(d, at + copy * plan.sum_floats));
            }
            return hn::Mul(sum, hn::Set(d, weight_scale(i, j)));
          },
          [&](int i, int j, V v) HWY_ATTR { hn::Store(v, d, taps[i * 3 + j]); });
      float* to = job.diff_weights + o * g.weights.out + c * g.weights.in;
      for (std::int64_t lane = 0; lane < used; ++lane, to += g.weights.out) {
        for (std::size_t tap = 0; tap < 9; ++tap)
          to[g.phases[0].taps[tap].kernel] = taps[tap][lane];
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

HWY_EXPORT(transform_both);
HWY_EXPORT(multiply_item);
HWY_EXPORT(run_share);
HWY_EXPORT(finish);

// Sums for more pairs of channels are shared.
constexpr std::int64_t kOwnSums = 128 * 128;
// Tiles of a block: of each thread, and of all together.
constexpr std::int64_t kOwnTiles = 24, kSharedTiles = 384;
// With fewer tiles, reading and writing large sums takes longer than is saved.
constexpr std::int64_t kLeastShared = 64;
// Faster than dense products up to this share of theirs.
constexpr double kMostProducts = 0.36;

std::size_t carve(const WinogradWeightsPlan& plan, std::byte* workspace, WinogradWeightsJob& job) {
  Carver carver(workspace);
  job.src_points = carver.take<float>(plan.src_floats * job.copies());
  job.diff_points = carver.take<float>(plan.diff_floats * job.copies());
  job.sums = carver.take<float>(plan.sum_floats * job.copies());
  job.zeros = carver.take<float>(std::max(job.src_pitch(), job.diff_pitch()));
  return carver.bytes();
}

void run_shared(const WinogradWeightsJob& job) {
  const WinogradWeightsPlan& plan = *job.plan;
  for (std::int64_t block = 0; block < plan.blocks; ++block) {
    const std::int64_t first = block * plan.block;
    const std::int64_t tiles = std::min(plan.block, plan.grid.count() - first);
    parallel_for(tiles, 1, [&](std::int64_t begin, std::int64_t end) {
      HWY_DYNAMIC_DISPATCH(transform_both)
      (job, first + begin, first + end, job.src_points + begin * job.src_pitch(),
       job.diff_points + begin * job.diff_pitch());
    });
    parallel_for(kTileProducts * plan.panels.count, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t item = begin; item < end; ++item) {
        HWY_DYNAMIC_DISPATCH(multiply_item)
        (job, item, tiles, job.src_points, job.diff_points, job.sums, block == 0);
      }
    });
  }
}

}  // namespace

std::string refuse_winograd_weights(const Geometry& geometry) {
  const bool shared = geometry.src_channels * geometry.dst_channels > kOwnSums;
  const TileGrid grid = tile_grid(geometry.images, geometry.dst_h, geometry.dst_w);
  if (shared && grid.count() < kLeastShared) return "too few tiles for so many channels";
  return refuse_winograd(geometry, kMostProducts);
}

double winograd_weights_flop_factor(const Geometry& g) {
  // Additions and multiplications of the transforms in winograd_transform-inl.h.
  constexpr double kSrc = 12 * 24, kDiff = 10 * 16, kWeights = 36 + 9 * 13;
  const auto tiles = static_cast<double>(tile_grid(g.images, g.dst_h, g.dst_w).count());
  const auto src = static_cast<double>(g.src_channels), dst = static_cast<double>(g.dst_channels);
  const double executed =
      tiles * (2.0 * kTileProducts * src * dst + kSrc * src + kDiff * dst) + kWeights * src * dst;
  return executed / (2.0 * 9 * static_cast<double>(g.images * g.dst_h * g.dst_w) * src * dst);
}

WinogradWeightsPlan make_winograd_weights_plan(Geometry geometry, int threads) {
  WinogradWeightsPlan plan;
  plan.geometry = std::move(geometry);
  plan.threads = threads;
  const Geometry& g = plan.geometry;
  plan.grid = tile_grid(g.images, g.dst_h, g.dst_w);
  plan.panels = panels_for(g.dst_channels);
  plan.shared = g.src_channels * g.dst_channels > kOwnSums;
  const std::int64_t tiles = plan.grid.count();
  const std::int64_t most = plan.shared ? kSharedTiles : kOwnTiles;
  plan.blocks = (tiles + most - 1) / most;
  // Even cuts, and as many for each thread.
  if (!plan.shared) plan.blocks = (plan.blocks + threads - 1) / threads * threads;
  plan.block = (tiles + plan.blocks - 1) / plan.blocks;
  plan.blocks = (tiles + plan.block - 1) / plan.block;

  WinogradWeightsJob job;
  job.plan = &plan;
  plan.src_floats = kTileProducts * job.src_point();
  plan.diff_floats = kTileProducts * job.diff_point();
  plan.sum_floats = kTileProducts * job.sum_point();
  plan.workspace_bytes = carve(plan, nullptr, job);
  return plan;
}

void run_winograd_weights(const WinogradWeightsPlan& plan, const Tensor& src,
                          const Tensor& diff_dst, float* diff_weights, std::byte* workspace) {
  WinogradWeightsJob job;
  job.plan = &plan;
  job.src = src.as<float>();
  job.diff_dst = diff_dst.as<float>();
  job.diff_weights = diff_weights;
  job.src_strides = src.strides;
  job.dst_strides = diff_dst.strides;
  carve(plan, workspace, job);
  std::fill_n(job.zeros, std::max(job.src_pitch(), job.diff_pitch()), 0.0F);
  if (plan.shared) {
    run_shared(job);
  } else {
    parallel([&](int thread, int threads) {
      for (int share = thread; share < plan.threads; share += threads) {
        HWY_DYNAMIC_DISPATCH(run_share)(job, share);
      }
    });
  }
  parallel_for(plan.geometry.src_channels, 4, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(finish)(job, begin, end);
  });
}

}  // namespace ridgeline::native::conv
#endif
