#pragma once

// How long a grid of tiles takes, roughly: enough to tell a better choice of tiles from a worse.

#include <cstdint>

#include "backends/cuda/conv/conv_kernels.h"

namespace ridgeline::cuda::conv {

struct TileShape {
  int rows = 0, columns = 0;
  int blocks = 1;           // that share a multiprocessor
  double efficiency = 1.0;  // of the products, when a multiprocessor is full of such blocks
};
[[nodiscard]] TileShape shape_of(GatherTile tile);
[[nodiscard]] TileShape shape_of(WeightsTile tile);

struct Work {
  Arithmetic arithmetic = Arithmetic::f32;
  TileShape tile;
  std::int64_t blocks = 0;
  double slices = 0;         // of the depth, in an average block
  double fresh_rows = 1.0;   // share of the row operand that the first-level cache does not have
  std::int64_t partial = 0;  // elements of all partial sums
  int multiprocessors = 1;
};
// In cycles of a multiprocessor.
[[nodiscard]] double cycles_of(const Work& work);

[[nodiscard]] constexpr int element_bytes(Arithmetic arithmetic) {
  return arithmetic == Arithmetic::f32 || arithmetic == Arithmetic::tf32 ? 4 : 2;
}
// Elements of 16 bytes, and of a slice of the depth.
[[nodiscard]] constexpr int pack_of(Arithmetic arithmetic) {
  return 16 / element_bytes(arithmetic);
}
[[nodiscard]] constexpr int slice_of(Arithmetic arithmetic) {
  return 128 / element_bytes(arithmetic);
}

}  // namespace ridgeline::cuda::conv
