#pragma once

#include <span>

#include "plan/kernel.h"

namespace ridgeline::native {

// u8 pixels to floats, channels innermost, some samples mirrored.
[[nodiscard]] std::span<const KernelRow> normalize_rows();

}  // namespace ridgeline::native
