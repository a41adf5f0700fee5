#pragma once

// The gradients of activation and bias, alone and joined with what surrounds them:
// [add +] activation_backward [+ bias_backward].

#include <span>

#include "plan/kernel.h"

namespace ridgeline::native {

[[nodiscard]] std::span<const KernelRow> activation_backward_rows();

}  // namespace ridgeline::native
