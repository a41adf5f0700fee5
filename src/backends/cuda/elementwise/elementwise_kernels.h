#pragma once

#include "backends/cuda/launch.h"

namespace ridgeline::cuda {

// dst = activation(src [+ other]), or with `kept` the gradient: dst = backward(src [+ other],
// kept).
struct Elementwise {
  DType dtype = DType::f32;
  Rows src, other, kept, dst;  // other, kept: null where there is none
  int activation = kNoActivation;
  float slope = 0.0F;
};
void launch_elementwise(const Elementwise& task, Stream stream);

}  // namespace ridgeline::cuda
