#pragma once

// Forward work in which every element is alone: bias, activation, add and add + activation.

#include <span>

#include "plan/kernel.h"

namespace ridgeline::native {

[[nodiscard]] std::span<const KernelRow> elementwise_rows();

}  // namespace ridgeline::native
