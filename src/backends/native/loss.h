#pragma once

#include <cstdint>
#include <span>

#include "plan/kernel.h"

namespace ridgeline::native {

// Softmax cross-entropy, its gradient and the running metrics; together they are one kernel.
[[nodiscard]] std::span<const KernelRow> loss_rows();

// Throws when a label is not one of the classes; threads could not.
void check_labels(std::span<const std::int32_t> labels, std::int64_t classes);

}  // namespace ridgeline::native
