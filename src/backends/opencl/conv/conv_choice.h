#pragma once

// Which tile computes a convolution on the current device: the fastest of some, by measuring. A
// choice is made once for a problem and remembered, in the process and in a file. Without measuring
// it is the first candidate that the device can run.

#include "backends/opencl/conv/conv_plan.h"

namespace ridgeline::opencl::conv {

[[nodiscard]] GatherPlan choose_forward(const Geometry& geometry, bool measure);
[[nodiscard]] GatherPlan choose_backward_data(const Geometry& geometry, bool measure);
[[nodiscard]] WeightsPlan choose_backward_weights(const Geometry& geometry, bool measure);

}  // namespace ridgeline::opencl::conv
