#pragma once

// Max and average pooling over nhwc images.

#include <span>

#include "plan/kernel.h"

namespace ridgeline::native {

[[nodiscard]] std::span<const KernelRow> pool_rows();

}  // namespace ridgeline::native
