#pragma once

#include <span>

#include "plan/kernel.h"

namespace ridgeline::native {

// Convolutions: forward, alone or with bias and activation, and both gradients.
// docs/kernels/native-convolution.md tells how they came to be fast.
[[nodiscard]] std::span<const KernelRow> conv_rows();

}  // namespace ridgeline::native
