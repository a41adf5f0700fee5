#pragma once

// Convolutions in bf16 as products of matrices, forward and backward data, for everything but
// depthwise; fully connected layers are convolutions of images of one pixel. See
// docs/kernels/native-bf16.md.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/native/bf16_block.h"
#include "backends/native/conv_geometry.h"
#include "backends/native/gemm.h"

namespace ridgeline::native::conv {

// Rows a multiple of this many elements apart fall into few sets of the first-level cache.
inline constexpr std::int64_t kUnluckyPitch = 512;

// Where weights[out channel][in channel][kernel] lies when channels are innermost, within a group.
struct NhwcWeights {
  std::int64_t group = 0, out = 0, in = 0, tap = 0;
};
[[nodiscard]] NhwcWeights forward_weights(const Geometry& geometry);
[[nodiscard]] NhwcWeights backward_data_weights(const Geometry& geometry);

// Groups that share a matrix: narrow ones stand in one together, with zeros between them.
struct GroupBlocks {
  std::int64_t groups = 1, merged = 1, count = 1;

  [[nodiscard]] std::int64_t groups_of(std::int64_t block) const {
    return std::min(merged, groups - block * merged);
  }
};
[[nodiscard]] GroupBlocks group_blocks(const Geometry& geometry);

// A src that a band of dst reads, copied with zeros around, so that a tap is an offset. With a step
// the pixels of one remainder lie together: those of neighbouring dst pixels are neighbours.
struct Grid {
  std::int64_t rows = 0, columns = 0;  // of one remainder
  std::int64_t image_pixels = 0;       // of all remainders
  std::int64_t row = 0;                // src row of the first, may be negative

  // In pixels.
  [[nodiscard]] std::int64_t tap_offset(const Geometry& geometry, const Tap& tap) const;
};
// For so many rows of dst.
[[nodiscard]] Grid make_grid(const Geometry& geometry, std::int64_t dst_rows);
// The pixels of dst that tiles of a grid cover for each that there is: 1 is perfect.
[[nodiscard]] double grid_waste(const Geometry& geometry, const Grid& grid, std::int64_t multiple);
// The src of each pixel of a grid, one after the other, over as many images as are asked for.
class GridWalk {
 public:
  // src: of the first image.
  GridWalk(const Geometry& geometry, const Grid& grid, const BFloat16* src, const Strides& strides);
  // Null: outside.
  [[nodiscard]] const BFloat16* next();

 private:
  void begin_row();

  const Geometry* geometry_;
  Grid grid_;
  const BFloat16* image_;
  Strides strides_;
  std::int64_t remainder_ = 0, row_ = 0, column_ = 0, x_ = 0;
  const BFloat16* line_ = nullptr;  // the row of src; null: outside
};

// Where the rows of a product come from.
enum class RowSource : std::uint8_t {
  direct,  // a pixel's channels, as they lie
  grid,    // a copied band
  panel,   // what a pixel of dst sees, side by side
};

// Taps of one kernel row whose src lies side by side.
struct PanelRun {
  std::int64_t dy = 0, dx = 0, taps = 1;
  std::int64_t at = 0;  // in a row of the panel
};

struct Bf16Phase {
  std::vector<std::int64_t> chunks;  // where each begins in a row
  std::vector<PanelRun> runs;
  std::int64_t packed = 0;  // where its weights begin
};

// A piece of work: a band or some pixels of one phase, for some blocks of dst channels.
struct Bf16Item {
  std::int64_t phase = 0, begin = 0, end = 0;  // pixels; of a grid: begin is the band
  std::int64_t first_unit = 0, last_unit = 0;
};

struct Bf16Plan {
  Geometry geometry;
  NhwcWeights weights;
  Bf16Unit unit = Bf16Unit::none;
  int threads = 1;
  RowSource source = RowSource::panel;
  bool tapwise = true;  // the channels of a tap begin at a chunk of their own
  GroupBlocks blocks;
  std::int64_t depth_step = 0;     // elements of a row for one tap
  std::int64_t row_pitch = 0;      // of a grid's pixels, or of a panel's rows: elements
  std::int64_t column_blocks = 0;  // of one block of groups
  Bands bands;                     // of a grid
  Grid grid;
  std::vector<Bf16Phase> phases;
  std::vector<Bf16Item> items;
  std::int64_t packed_elements = 0, buffer_elements = 0, most_rows = 0;
  std::size_t workspace_bytes = 0;
};

[[nodiscard]] Bf16Plan make_bf16_plan(Geometry geometry, const NhwcWeights& weights, Bf16Unit unit,
                                      int threads);

// src and dst are nhwc with any pixel stride, weights dense with channels innermost.
void run_bf16(const Bf16Plan& plan, const Tensor& src, const BFloat16* weights, const Tensor& dst,
              const Epilogue& epilogue, std::byte* workspace);

struct Bf16WeightsPlan {
  Geometry geometry;  // of the forward convolution; its dst is diff_dst
  Bf16Unit unit = Bf16Unit::none;
  int threads = 1, pixel_parts = 1, unit_parts = 1;
  GroupBlocks blocks;
  bool on_grid = false;  // src is transposed once for all taps; else for each tap
  Bands bands;
  Grid grid;
  std::int64_t band_pixels = 0;                 // without a grid
  std::int64_t src_blocks = 0, dst_blocks = 0;  // of 32 channels, in one block of groups
  std::int64_t pitch = 0;                       // of a row of transposed src: elements
  std::int64_t most_chunks = 0;                 // of a band
  std::int64_t part_floats = 0;                 // sums of one part of the pixels
  std::size_t workspace_bytes = 0;
};

[[nodiscard]] Bf16WeightsPlan make_bf16_weights_plan(Geometry geometry, Bf16Unit unit, int threads);

// diff_weights is plain.
void run_bf16_weights(const Bf16WeightsPlan& plan, const Tensor& src, const Tensor& diff_dst,
                      BFloat16* diff_weights, std::byte* workspace);

}  // namespace ridgeline::native::conv
