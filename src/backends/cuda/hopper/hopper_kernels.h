#pragma once

// Convolutions on Hopper's own instructions: the parameters of their kernels and what starts them.
// docs/kernels/cuda-hopper-convolution.md tells how they work.

#include <cuda.h>

#include <cstdint>

#include "backends/cuda/conv/conv_kernels.h"

namespace ridgeline::cuda::hopper {

enum class Role : std::uint8_t {
  forward,  // rows: pixels of dst, columns: its channels, depth: taps x channels of src
  data,     // rows: pixels of src, columns: its channels, depth: taps x channels of dst
  gated,    // as data, and what comes before in the backward pass: see Gate
  weights,  // rows: channels of dst, columns: taps x channels of src, depth: pixels of dst
};

// Rows by columns that a block computes at a time.
enum class Tile : std::uint8_t {
  wide,    // 128 x 128, two blocks on a multiprocessor
  narrow,  // 128 x 64, two blocks
  high,    // 256 x 64, two blocks
  large,   // 128 x 256
  tall,    // 256 x 128
};

struct TileShape {
  int rows, columns, blocks;  // blocks on a multiprocessor
};
[[nodiscard]] constexpr TileShape shape_of(Tile tile) {
  switch (tile) {
    case Tile::wide:
      return {128, 128, 2};
    case Tile::narrow:
      return {128, 64, 2};
    case Tile::high:
      return {256, 64, 2};
    case Tile::large:
      return {128, 256, 1};
    case Tile::tall:
      return {256, 128, 1};
  }
  return {};
}

inline constexpr int kSlice = 64;  // of the depth: 128 bytes

inline constexpr int kMostExtras = 3;

// What follows the gradient of an image in one go: g = gate(gradient [+ other]), which is stored,
// and the sums that the normalisation's gradient is made of.
struct Gate {
  // What was normalised, then the activation's result where there is one, then other likewise.
  CUtensorMap images[kMostExtras];
  int extras = 1;
  bool gated = false, added = false;
  float closing = 0.0F;  // as closing_bound has it
  const float* mean = nullptr;
  // What each block leaves: sums of g, and of g times the distance from the mean, of its channels:
  // [parts][2][columns].
  float* sums = nullptr;
};

// A product whose operands the copy engine gathers. Forward and data: `a` are the images that are
// read, `b` the weights, `dst` the images that are written. Weights: `a` is diff_dst, `b` is src.
struct Product {
  CUtensorMap a, b, dst;
  int rows = 0, columns = 0;
  int row_tiles = 1, column_tiles = 1, tiles = 1;  // tiles: of all splits
  conv::Divide by_row_tiles, by_column_tiles;
  int taps = 1, kernel_w = 1, dilation_h = 1, dilation_w = 1;
  int channel_slices = 1;  // of one tap
  // Where tap (0, 0) of the first gathered pixel lies, and the distance of two pixels.
  int origin_h = 0, origin_w = 0, step_h = 1, step_w = 1;
  conv::Divide by_grid_h, by_grid_w;  // of the pixels that are gathered for
  conv::Epilogue epilogue;            // forward; bounds alone
  // Forward: where each block leaves the moments of its channels, as PartMoments has them; null:
  // not wanted. A block then has tiles of one column alone.
  float* moments = nullptr;
  Gate gate;
  // Weights: sums in f32, [splits][rows][columns]; channels of a tap.
  float* partial = nullptr;
  int channels = 0, slices = 0, slices_per_split = 0;
  conv::Divide by_channel_slices;
};

// A column of tiles is never shared by two columns' blocks: the number of blocks is a multiple of
// the columns' or that of all tiles.
void launch_forward(DType dtype, Tile tile, const Product& p, int blocks, Stream stream);
void launch_data(DType dtype, Tile tile, const Product& p, int blocks, Stream stream);
void launch_gated(DType dtype, Tile tile, const Product& p, int blocks, Stream stream);
void launch_weights(DType dtype, Tile tile, const Product& p, int blocks, Stream stream);

}  // namespace ridgeline::cuda::hopper
