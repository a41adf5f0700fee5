#pragma once

// What is decided about a convolution on Hopper's instructions before its tensors are known, and
// the maps by which the copy engine finds them.

#include <cstddef>
#include <optional>
#include <string>

#include "backends/cuda/conv/conv_plan.h"
#include "backends/cuda/hopper/hopper_kernels.h"

namespace ridgeline::cuda::hopper {

struct Plan {
  Role role = Role::forward;
  DType dtype = DType::bf16;
  conv::Geometry geometry;
  Tile tile = Tile::wide;
  int splits = 1, blocks = 1;
  double cycles = 0.0;  // estimated
  Product base;         // everything but maps and pointers
  std::size_t workspace_bytes = 0;

  [[nodiscard]] std::string text() const;  // "wgmma 128x128 tiles, 4 parts"
};

// Why these kernels cannot compute a convolution; empty when they can.
[[nodiscard]] std::string refuse(Role role, const conv::Geometry& geometry, DType dtype,
                                 const DeviceLimits& limits);

// With the tile that should be fastest; or with a given one, and a given number of splits if there
// is one. REQUIRES: not refused.
[[nodiscard]] Plan make_plan(Role role, const conv::Geometry& geometry, DType dtype,
                             const DeviceLimits& limits);
[[nodiscard]] Plan make_plan(Role role, const conv::Geometry& geometry, DType dtype, Tile tile,
                             std::optional<int> splits, const DeviceLimits& limits);

// The blocks of `plan` that leave moments or sums of each channel.
[[nodiscard]] int channel_parts(const Plan& plan);

// Whether tensors begin, with all their pixels, at multiples of 16 bytes, as the copy engine wants.
[[nodiscard]] bool fits(const Rows& rows, DType dtype);

// REQUIRES of all: tensors that fit. Moments are left where they are not null.
void run_forward(const Plan& plan, const Rows& src, const void* weights, const Rows& dst,
                 const conv::Epilogue& epilogue, float* moments, Stream stream);
void run_data(const Plan& plan, const Rows& diff_dst, const void* weights, const Rows& diff_src,
              Stream stream);

// What Gate reads, and where its sums go; kept and other are null where there is none.
struct GateRows {
  Rows src, kept, other;
  float closing = 0.0F;  // the bound at and above which nothing passes; NaN: none
  const float* mean = nullptr;
  float* sums = nullptr;  // [parts][2][channels]
};
void run_gated(const Plan& plan, const Rows& diff_dst, const void* weights, const Rows& g,
               const GateRows& gate, Stream stream);
void run_weights(const Plan& plan, const Rows& src, const Rows& diff_dst, void* diff_weights,
                 std::byte* workspace, Stream stream);

}  // namespace ridgeline::cuda::hopper
