#pragma once

// The gradient of pooling, alone and as pool_backward + activation_backward [+ bias_backward],
// which in a network of convolution, bias, activation and pool makes one pass of three.

#include <span>

#include "plan/kernel.h"

namespace ridgeline::native {

[[nodiscard]] std::span<const KernelRow> pool_backward_rows();

}  // namespace ridgeline::native
