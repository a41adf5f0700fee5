#pragma once

// Dropout, whose mask is a function of the logical index: the same in every layout.

#include <span>

#include "plan/kernel.h"

namespace ridgeline::native {

[[nodiscard]] std::span<const KernelRow> dropout_rows();

}  // namespace ridgeline::native
