#include "backends/cuda/conv/conv_cost.h"

#include <algorithm>

namespace ridgeline::cuda::conv {
namespace {

// Multiply-adds of one multiprocessor in a cycle, as far as these kernels get on a large Hopper or
// Ampere chip. Only ratios matter.
double products_per_cycle(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::f32:
      return 100;
    case Arithmetic::tf32:
      return 500;
    case Arithmetic::bf16:
    case Arithmetic::f16:
      return 1000;
  }
  return 100;
}

constexpr double kBytesPerCycle = 24;   // from the second-level cache, to one multiprocessor
constexpr double kBlockCycles = 1500;   // to find the first addresses, fill the pipeline, store
constexpr double kKernelCycles = 3500;  // until a further kernel has begun

// A multiprocessor with few warps waits: nothing hides the latency of a block's own steps.
double share_of_full(const TileShape& tile, std::int64_t blocks) {
  const std::int64_t together = std::min<std::int64_t>(blocks, tile.blocks);
  if (together == tile.blocks) return 1.0;
  return together == 1 ? 0.6 : 0.9;
}

}  // namespace

TileShape shape_of(GatherTile tile) {
  switch (tile) {
    case GatherTile::wide:
      return {128, 128, 2, 1.0};
    case GatherTile::high:
      return {256, 64, 2, 0.95};
    case GatherTile::tall:
      return {128, 64, 3, 0.75};
    case GatherTile::narrow:
      return {128, 32, 3, 0.5};
    case GatherTile::small:
      return {64, 64, 4, 0.65};
    case GatherTile::elements:
      return {128, 64, 3, 0.2};
  }
  return {};
}

TileShape shape_of(WeightsTile tile) {
  switch (tile) {
    case WeightsTile::wide:
      return {128, 128, 2, 1.0};
    case WeightsTile::flat:
      return {64, 128, 3, 0.75};
    case WeightsTile::tall:
      return {128, 64, 3, 0.75};
    case WeightsTile::small:
      return {64, 64, 4, 0.65};
    case WeightsTile::src_elements:
    case WeightsTile::elements:
      return {64, 64, 4, 0.2};
  }
  return {};
}

double cycles_of(const Work& work) {
  const TileShape& tile = work.tile;
  const double depth = work.slices * slice_of(work.arithmetic);
  const double products =
      tile.rows * tile.columns * depth / (products_per_cycle(work.arithmetic) * tile.efficiency);
  const double bytes =
      ((tile.rows * work.fresh_rows + tile.columns) * depth + tile.rows * tile.columns) *
      element_bytes(work.arithmetic);
  const double block = std::max(products, bytes / kBytesPerCycle) + kBlockCycles / tile.blocks;
  const std::int64_t each = (work.blocks + work.multiprocessors - 1) / work.multiprocessors;
  double cycles = static_cast<double>(each) * block / share_of_full(tile, each);
  if (work.partial > 0) {
    // Written and read again.
    cycles += kKernelCycles +
              8.0 * static_cast<double>(work.partial) / (kBytesPerCycle * work.multiprocessors);
  }
  return cycles;
}

}  // namespace ridgeline::cuda::conv
