#pragma once

#include "backends/cuda/launch.h"
#include "ops/step_state.h"

namespace ridgeline::cuda {

// dst = src, times 1 / (1 - probability) or 0 as the random numbers of the element's logical index
// have it: (image * channels + channel) * pixels + pixel. Of whole samples also
// dst = src * factor * ... + other, with a factor for each channel.
struct Dropout {
  DType dtype = DType::f32;
  Rows src, dst, other;           // other: null where nothing is added
  const float* factor = nullptr;  // null: none
  std::int64_t pixels = 1;        // of an image; 1 for rows of features
  float probability = 0.0F;
  std::uint32_t layer = 0;
  bool per_sample = false;  // the index is the image's
  const StepState* state = nullptr;
};
void launch_dropout(const Dropout& task, Stream stream);

}  // namespace ridgeline::cuda
