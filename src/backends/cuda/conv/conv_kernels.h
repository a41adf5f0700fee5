#pragma once

// Convolutions and matrix products as matrix products of gathered rows: the parameters of their
// kernels and what starts them. docs/kernels/cuda-convolution.md tells how the kernels work.

#include <cstdint>
#include <limits>

#include "backends/cuda/launch.h"

namespace ridgeline::cuda::conv {

// What the products are computed with. Sums are always f32.
enum class Arithmetic : std::uint8_t {
  f32,   // single multiply-adds
  tf32,  // tensor cores, f32 operands rounded to TF32
  bf16,  // tensor cores
  f16,   // tensor cores
};

// Division of numbers from 0 to 2^31 - 1 by multiplication with 2^32 (2^shift - d) / d + 1.
struct Divide {
  std::uint32_t divisor = 1, multiplier = 1, shift = 0;
};

// What happens to a sum before it is rounded and stored.
struct Epilogue {
  const float* bias = nullptr;  // one number for each channel of dst
  int activation = kNoActivation;
  float slope = 0.0F;
  // No activation, ReLU and ReLU6 are bounds; others are computed by their kind.
  bool bounded = true;
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
};

// A convolution in gather form: every dst pixel is a sum, over taps, of one src pixel times one
// matrix of weights. Forward is of this form; so is backward data, whose src is diff_dst and whose
// dst is diff_src. With a stride, backward data falls apart into classes of dst rows and columns
// that see the same taps.
//
// Position i of a class is dst row first + i * dst_step; its tap t reads src row
// origin + i * src_step + t * tap_step and has row first_tap + t * kernel_step of the kernel.
struct Axis {
  int count = 0, first = 0, origin = 0, taps = 0, first_tap = 0;
  Divide by_count, by_taps;
};

inline constexpr int kMaxClasses = 8;  // of rows, and of columns
inline constexpr int kMaxTaps = 32;    // of a class, for loads of 16 bytes: bits of a mask

struct Gather {
  const void* src = nullptr;
  const void* weights = nullptr;
  void* dst = nullptr;
  float* partial = nullptr;  // if not null: sums go there, [splits][dst pixels][groups * width]
  std::int64_t src_stride = 0, dst_stride = 0;  // elements from pixel to pixel
  int images = 0, src_h = 0, src_w = 0, dst_h = 0, dst_w = 0;
  int depth = 0, width = 0;  // channels of src and of dst, of one group
  int groups = 1;
  // weights[channel of the op's dst][kernel_h][kernel_w][channel of the op's src]: so many elements
  // from one channel of the op's dst to the next.
  std::int64_t weights_pitch = 0;
  int kernel_w = 1;
  int src_step_h = 1, src_step_w = 1, dst_step_h = 1, dst_step_w = 1;
  int tap_step_h = 1, tap_step_w = 1, kernel_step_h = 1, kernel_step_w = 1;
  Axis rows[kMaxClasses], columns[kMaxClasses];
  int row_classes = 1, column_classes = 1;
  bool src_in_order = false;  // dst pixel m reads src pixel m alone
  bool dst_in_order = false;  // one class, without gaps
  bool whole_packs = false;   // dst can be stored by 16 bytes
  // Whole slices of the depth belong to one tap: then neighbouring taps of a kernel row come one
  // after the other, and find each other's pixels in the first-level cache.
  bool taps_inner = false;
  Divide by_depth, by_depth_slices;
  Divide by_width_tiles, by_group_tiles;  // tiles of all channels of dst, and of one group's
  int splits = 1;
  bool asynchronous = true;  // copies to shared memory, from 8.0 on
  Epilogue epilogue;
};

// Gradient of weights: diff_weights[outputs][kernel_h * kernel_w * channels] as the product of
// diff_dst, transposed, and the gathered src, summed over pixels; the same for each group.
struct Weights {
  const void* src = nullptr;
  const void* diff_dst = nullptr;
  void* diff_weights = nullptr;
  float* partial = nullptr;  // if not null: sums go there, [splits][groups * outputs][width]
  std::int64_t src_stride = 0, dst_stride = 0;                 // elements from pixel to pixel
  int src_h = 0, src_w = 0, dst_h = 0, dst_w = 0, pixels = 0;  // pixels of dst, all images
  int outputs = 0, channels = 0, width = 0;                    // of a group
  int groups = 1, kernel_w = 1;
  int stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1, pad_top = 0, pad_left = 0;
  Divide by_channels, by_kernel_w, by_dst_h, by_dst_w;
  Divide by_width_tiles, by_group_tiles;  // of a row of tiles, and of one group's
  bool whole_packs = false;               // diff_weights can be stored by 16 bytes
  int splits = 1, pixels_per_split = 0;
  bool asynchronous = true;  // copies to shared memory, from 8.0 on
};

// Any convolution, groups included, computed one dst element a thread.
struct Direct {
  const void* src = nullptr;  // diff_dst in backward data
  const void* weights = nullptr;
  const void* diff_dst = nullptr;  // in backward weights
  void* dst = nullptr;             // diff_src, diff_weights
  std::int64_t src_stride = 0, dst_stride = 0, diff_dst_stride = 0;
  std::int64_t images = 0, src_h = 0, src_w = 0, dst_h = 0, dst_w = 0;  // of the forward op
  std::int64_t group_src = 0, group_dst = 0, groups = 1;                // channels of a group
  int kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1;
  int dilation_h = 1, dilation_w = 1, pad_top = 0, pad_left = 0;
  Epilogue epilogue;
};

// Tiles of the product that one block computes: rows by columns.
enum class GatherTile : std::uint8_t {
  wide,      // 128 x 128
  high,      // 256 x 64, of bf16 and f16 alone
  tall,      // 128 x 64
  narrow,    // 128 x 32, on tensor cores alone
  small,     // 64 x 64
  elements,  // 128 x 64, src loaded element by element: any channels, any alignment
};
enum class WeightsTile : std::uint8_t {
  wide,          // 128 x 128
  flat,          // 64 x 128
  tall,          // 128 x 64
  small,         // 64 x 64
  src_elements,  // 64 x 64, src loaded element by element
  elements,      // 64 x 64, both loaded element by element
};

struct Grid {
  unsigned x = 1, y = 1, z = 1;
};

// x: tiles, those of one row of tiles and of all groups side by side; y: classes; z: splits. In
// forward with
// GatherTile::elements the rows of weights lie at multiples of 16 bytes, behind zeros.
void launch_forward(Arithmetic arithmetic, GatherTile tile, const Gather& p, Grid grid,
                    Stream stream);
void launch_backward_data(Arithmetic arithmetic, GatherTile tile, const Gather& p, Grid grid,
                          Stream stream);
// x: tiles; y: splits.
void launch_backward_weights(Arithmetic arithmetic, WeightsTile tile, const Weights& p, Grid grid,
                             Stream stream);

void launch_direct_forward(DType dtype, const Direct& p, Stream stream);
void launch_direct_backward_data(DType dtype, const Direct& p, Stream stream);
void launch_direct_backward_weights(DType dtype, const Direct& p, Stream stream);

// Of rows of which only some elements are wanted: `channels` of every joined * channels, those of
// the row's group among the joined ones.
struct Unspread {
  int joined = 1;  // 1: all are wanted
  int channels = 1, group_rows = 1;
  Divide by_channels, by_group_rows, by_joined;
};

// Adds the partial sums, always in the same order, and finishes them.
struct PartialSums {
  const float* partial = nullptr;
  int splits = 1;
  Rows dst;
  Divide by_width;
  Epilogue epilogue;
  Unspread unspread;
};
void launch_add_partial_sums(DType dtype, const PartialSums& p, Stream stream);

// Copies rows to rows of another stride, zeros behind them up to the stride, of the same type or
// of f32.
void launch_copy_rows(DType src_type, const Rows& src, DType dst_type, const Rows& dst,
                      Stream stream);

// Weights [outputs][taps][channels] as [outputs][taps][joined * channels] in rows of `pitch`, of
// the same type or of f32: channels lie at the place of their group among those that are computed
// as one, with zeros around them and behind the row.
struct SpreadWeights {
  DType src_type = DType::f32;
  const void* src = nullptr;
  DType dst_type = DType::f32;
  void* dst = nullptr;
  std::int64_t outputs = 0, taps = 1, channels = 0, group_outputs = 0, joined = 1, pitch = 0;
};
void launch_spread_weights(const SpreadWeights& p, Stream stream);

}  // namespace ridgeline::cuda::conv
