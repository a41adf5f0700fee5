#pragma once

// What is done to all gradients of a step together.

#include "backends/cuda/launch.h"
#include "ops/step_state.h"

namespace ridgeline::cuda {

// A gradient or a sum of gradients: dense, its order does not matter.
struct GradientTensor {
  const void* src = nullptr;
  void* dst = nullptr;  // of the same type, and for sums f32
  std::int64_t elements = 0;
  DType dtype = DType::f32;    // of src
  const float* sum = nullptr;  // what src is added to; null: nothing
};
// Of one launch at most: their table is a kernel's parameter.
inline constexpr int kGradientTensors = 64;
// Partial sums that launch_squares writes for each tensor.
inline constexpr int kSquareParts = 64;

// dst = sum + src, in f32.
void launch_accumulate(const GradientTensor* tensors, int count, Stream stream);

// Sums of squares in parts, always added in the same order.
void launch_squares(const GradientTensor* tensors, int count, double* parts, Stream stream);
// What gradients of this norm are multiplied by, as clip_factor() has it.
void launch_clip_factor(const double* parts, int count, double largest, const StepState* state,
                        float* factor, Stream stream);
// dst = src * factor.
void launch_shrink(const GradientTensor* tensors, int count, const float* factor, Stream stream);

}  // namespace ridgeline::cuda
