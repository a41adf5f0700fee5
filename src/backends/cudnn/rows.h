#pragma once

// The rows of this backend, by the file that exports them.

#include <span>

#include "plan/kernel.h"

namespace ridgeline::cudnn {

[[nodiscard]] std::span<const KernelRow> conv_rows();
[[nodiscard]] std::span<const KernelRow> linear_rows();

}  // namespace ridgeline::cudnn
