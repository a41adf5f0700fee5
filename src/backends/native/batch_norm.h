#pragma once

// Batch normalisation, forward: statistics, running statistics, and apply, alone and as
// bn_apply [+ add] [+ activation].

#include <span>

#include "plan/kernel.h"

namespace ridgeline::native {

[[nodiscard]] std::span<const KernelRow> batch_norm_rows();

}  // namespace ridgeline::native
