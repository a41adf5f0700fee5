#pragma once

#include <span>

#include "plan/kernel.h"

namespace ridgeline::native {

// SGD and Adam: all updates of a step with the same settings as one kernel, and each alone.
[[nodiscard]] std::span<const KernelRow> optimizer_rows();

}  // namespace ridgeline::native
