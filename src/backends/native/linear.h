#pragma once

#include <span>

#include "plan/kernel.h"

namespace ridgeline::native {

// Fully connected layers: the training step of a whole small network first, then forward, with bias
// and activation or alone, and both gradients.
[[nodiscard]] std::span<const KernelRow> linear_rows();

}  // namespace ridgeline::native
