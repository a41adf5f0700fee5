#pragma once

#include "backends/cuda/norm/channel_grid.h"
#include "ops/step_state.h"

namespace ridgeline::cuda {

// The gradient of a block's end, dst = src * scale * the sample's dropout factor, in one pass:
// g = diff * the factor, diff_src = g * scale, and the sums over the rows of g * src, which is the
// gradient of scale, and of diff_src, which is that of a bias before.
struct BlockEndBackward {
  DType dtype = DType::f32;
  Rows diff, src, diff_src;
  const float* scale = nullptr;
  float probability = 0.0F;  // 0: nothing is dropped
  std::uint32_t layer = 0;
  const StepState* state = nullptr;
  std::int64_t pixels = 1;                            // of an image
  float *diff_scale = nullptr, *diff_bias = nullptr;  // null where they are not read
  void* workspace = nullptr;
  unsigned* counters = nullptr;
};
[[nodiscard]] SumScratch block_end_scratch(DType dtype, std::int64_t rows, std::int64_t channels);
void launch_block_end_backward(const BlockEndBackward& task, Stream stream);

}  // namespace ridgeline::cuda
