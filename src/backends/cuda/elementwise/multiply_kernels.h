#pragma once

#include "backends/cuda/launch.h"

namespace ridgeline::cuda {

// dst = src * factor, row by row: `rows_of_factor` neighbouring rows of src share one of factor. 1:
// both have the same shape; the pixels of an image: one factor for a channel of a sample.
struct Multiply {
  DType dtype = DType::f32;
  Rows src, factor, dst;
  std::int64_t rows_of_factor = 1;
};
void launch_multiply(const Multiply& task, Stream stream);

}  // namespace ridgeline::cuda
