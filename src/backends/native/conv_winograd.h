#pragma once

// Winograd's F(4x4, 3x3): 3 x 3 convolutions with stride 1, forward and backward data, with a
// quarter of the multiplications. docs/kernels/native-winograd.md tells how and why.

#include <cstddef>
#include <cstdint>
#include <string>

#include "backends/native/conv_blocking.h"
#include "backends/native/conv_geometry.h"
#include "backends/native/gemm.h"

namespace ridgeline::native::conv {

// Tiles of 4 x 4 dst pixels, each from 6 x 6 of src.
inline constexpr std::int64_t kTileOut = 4, kTileIn = 6, kTileProducts = kTileIn * kTileIn;

// How dst is cut into tiles. The last ones of a row or column may stand over the edge.
struct TileGrid {
  std::int64_t images = 0, rows = 0, cols = 0;

  [[nodiscard]] std::int64_t count() const { return images * rows * cols; }
};
// A tile: its image, and its first row and column of dst.
struct TilePlace {
  std::int64_t image = 0, y = 0, x = 0;
};
[[nodiscard]] TilePlace place_of(const TileGrid& grid, std::int64_t tile);
[[nodiscard]] TileGrid tile_grid(std::int64_t images, std::int64_t height, std::int64_t width);

// Why a convolution is not one of 3 x 3 with stride 1, or would not be faster so; else empty.
// `most_products`: multiplications of tiles ÷ those of the op; tiles over the edges waste some.
[[nodiscard]] std::string refuse_winograd(const Geometry& geometry, double most_products = 0.5);

struct WinogradPlan {
  Geometry geometry;
  int threads = 1;
  TileGrid grid;
  Panels panels;
  // Tiles that are multiplied together, and how many such blocks there are.
  std::int64_t block = 0, blocks = 0;
  std::int64_t depth_block = 0, depth_blocks = 1;  // src channels
  // Few tiles: all of src is transformed before the first product, threads share the result, and
  // weights are transformed block by block where they are used. Else weights come first, and each
  // thread transforms a block of tiles right before it is used.
  bool late = false;
  std::int64_t src_floats = 0, sum_floats = 0, weight_floats = 0;  // of what lies in the workspace
  std::size_t workspace_bytes = 0;
};

// REQUIRES: 3 x 3 taps, stride 1, no groups. It need not be faster.
[[nodiscard]] WinogradPlan make_winograd_plan(Geometry geometry, int threads);

// Operations that the kernel executes ÷ those of the op, transforms included.
[[nodiscard]] double winograd_flop_factor(const Geometry& geometry);

// src and dst are nhwc with any pixel stride, weights plain.
void run_winograd(const WinogradPlan& plan, const Tensor& src, const float* weights,
                  const Tensor& dst, const Epilogue& epilogue, std::byte* workspace);

// The gradient of weights: 3 x 3 numbers from tiles of src and of diff_dst.
struct WinogradWeightsPlan {
  Geometry geometry;  // of forward
  int threads = 1;
  TileGrid grid;
  Panels panels;
  // Tiles that are transformed before they are multiplied.
  std::int64_t block = 0, blocks = 0;
  // Sums for all pairs of channels are large: threads share transformed tiles and sums, of which
  // each takes a part. Else each thread has tiles and sums of its own.
  bool shared = false;
  std::int64_t src_floats = 0, diff_floats = 0, sum_floats = 0;
  std::size_t workspace_bytes = 0;
};

// REQUIRES: as make_winograd_plan, for the geometry of forward.
[[nodiscard]] WinogradWeightsPlan make_winograd_weights_plan(Geometry geometry, int threads);
[[nodiscard]] double winograd_weights_flop_factor(const Geometry& geometry);

[[nodiscard]] std::string refuse_winograd_weights(const Geometry& geometry);

// src and diff_dst are nhwc with any pixel stride, diff_weights plain.
void run_winograd_weights(const WinogradWeightsPlan& plan, const Tensor& src,
                          const Tensor& diff_dst, float* diff_weights, std::byte* workspace);

}  // namespace ridgeline::native::conv
