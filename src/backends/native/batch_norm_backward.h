#pragma once

// Batch normalisation, backward: the two ops alone, and both in one kernel together with what
// makes their gradient: [add +] [activation_backward +] bn_backward_reduce + bn_backward_apply.

#include <span>

#include "plan/kernel.h"

namespace ridgeline::native {

[[nodiscard]] std::span<const KernelRow> batch_norm_backward_rows();

}  // namespace ridgeline::native
