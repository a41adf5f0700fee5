#pragma once

// Kernels that only move elements: concat, slice and reshape, where the planner could not turn them
// into views.

#include <span>

#include "plan/kernel.h"

namespace ridgeline::native {

[[nodiscard]] std::span<const KernelRow> concat_rows();

}  // namespace ridgeline::native
