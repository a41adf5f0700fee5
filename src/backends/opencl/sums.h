#pragma once

// Sums over all rows of each channel, in a fixed order.

#include "backends/opencl/common.h"

namespace ridgeline::opencl {

// How the rows are cut into parts.
struct Parts {
  std::int64_t count = 1, rows = 1;
};
[[nodiscard]] Parts parts_of(std::int64_t rows);

// A gradient on its way: diff + other, through an activation whose kept value is there; stored
// where wanted. Products with src, normalised where there is a mean.
struct GradientSums {
  Rows diff = {}, other = {}, kept = {}, stored = {}, src = {};
  const void* mean = nullptr;
  const void* variance = nullptr;
  ActivationCode activation = {};
  float epsilon = 0.0F;
  // Where the results go; null: nowhere. `sums` of the gradient, `products` with src; the second of
  // each pair is a copy.
  const void *sums = nullptr, *sums_copy = nullptr;
  const void *products = nullptr, *products_copy = nullptr;
};
[[nodiscard]] std::size_t sums_bytes(std::int64_t rows, std::int64_t channels);
// REQUIRES: a workspace of sums_bytes.
void launch_sums(const KernelArgs& args, const GradientSums& task, const std::byte* workspace);

// dst[c] = factor * the sum over the parts.
void launch_finish(const KernelArgs& args, const void* parts, const void* dst, const void* copy,
                   std::int64_t channels, std::int64_t count, float factor);

// As many floats, rounded up to a boundary.
[[nodiscard]] inline std::size_t float_bytes(std::int64_t count) {
  return static_cast<std::size_t>((count * 4 + 63) / 64 * 64);
}

}  // namespace ridgeline::opencl
