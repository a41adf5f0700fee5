#pragma once

// The second stage of sums over many pixels: the first leaves each block's share.

#include "backends/cuda/launch.h"

namespace ridgeline::cuda {

// dst[i] = the sum over all parts of parts[part * width + i], always added in the same order.
void launch_sum_parts(const float* parts, int count, std::int64_t width, void* dst, DType dst_type,
                      Stream stream);

// The same divided by a number, with the rows of dst one behind the other in a part.
struct SumRows {
  const float* parts = nullptr;
  int count = 0;
  Rows dst;
  DType dst_type = DType::f32;
  float divisor = 1.0F;
};
void launch_sum_parts(const SumRows& task, Stream stream);

}  // namespace ridgeline::cuda
