#pragma once

// What the plans of forward, backward data and backward weights share.

#include <cstddef>
#include <vector>

#include "backends/cuda/conv/conv_plan.h"

namespace ridgeline::cuda::conv {

inline constexpr std::int64_t kMaxCount = std::int64_t{1} << 30;  // of pixels, weights, offsets

[[nodiscard]] Divide divide_by(std::int64_t divisor);

// Tensor cores know f16 from 7.5 on, bf16 and TF32 from 8.0 on; before, those are computed in f32.
[[nodiscard]] Arithmetic arithmetic_for(DType dtype, bool allow_tf32, const DeviceLimits& limits);
[[nodiscard]] inline bool copies_asynchronously(const DeviceLimits& limits) {
  return limits.capability >= 80;
}

[[nodiscard]] inline std::int64_t divide_up(std::int64_t value, std::int64_t by) {
  return (value + by - 1) / by;
}

// Whether the rows begin at multiples of 16 bytes.
[[nodiscard]] bool aligned(const void* data, std::int64_t stride, DType dtype);
[[nodiscard]] inline bool aligned(const Rows& rows, DType dtype) {
  return aligned(rows.data, rows.stride, dtype);
}

// Takes bytes at the end of a workspace; gives the place.
std::size_t take(std::size_t& workspace, std::int64_t bytes);

// Narrow groups leave most of a tile empty. So neighbouring ones may be computed together, as one
// group whose weights are zero where a channel of dst does not see one of src: more products, but
// of full tiles. The numbers of groups that may be joined, 1 first.
[[nodiscard]] std::vector<int> possible_joins(const Geometry& geometry, Arithmetic arithmetic);
[[nodiscard]] Geometry with_joined_groups(Geometry geometry, int joined);

// Whether even then most of a tile would lie beside a group.
[[nodiscard]] bool groups_are_narrow(const Geometry& geometry, Arithmetic arithmetic);

// Everything but the tensors.
[[nodiscard]] Direct direct_of(const Geometry& geometry);

}  // namespace ridgeline::cuda::conv
