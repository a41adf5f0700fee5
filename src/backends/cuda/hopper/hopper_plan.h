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
  Product base;  // everything but maps and pointers
  std::size_t workspace_bytes = 0;

  [[nodiscard]] std::string text() const;  // "wgmma 128x128 tiles, 4 parts"
};

// Why these kernels cannot compute a convolution; empty when they can.
[[nodiscard]] std::string refuse(Role role, const conv::Geometry& geometry, DType dtype,
                                 const DeviceLimits& limits);

// A tile or a number of splits that is given is taken. REQUIRES: not refused.
[[nodiscard]] Plan make_plan(Role role, const conv::Geometry& geometry, DType dtype,
                             const DeviceLimits& limits, std::optional<Tile> tile = {},
                             std::optional<int> splits = {});

// The blocks of `plan` that leave moments of each channel.
[[nodiscard]] int moment_parts(const Plan& plan);

// Whether tensors begin, with all their pixels, at multiples of 16 bytes, as the copy engine wants.
[[nodiscard]] bool fits(const Rows& rows, DType dtype);

// Forward, with moments where they are not null; data: `src` is diff_dst and `dst` diff_src.
// REQUIRES: tensors that fit.
void run_images(const Plan& plan, const Rows& src, const void* weights, const Rows& dst,
                const conv::Epilogue& epilogue, float* moments, Stream stream);
void run_weights(const Plan& plan, const Rows& src, const Rows& diff_dst, void* diff_weights,
                 std::byte* workspace, Stream stream);

}  // namespace ridgeline::cuda::hopper
