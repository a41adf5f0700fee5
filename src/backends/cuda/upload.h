#pragma once

// Small uploads as kernel arguments: no pinned memory, and the host may go on at once.

#include <cstddef>
#include <string>

#include "backends/cuda/launch.h"

namespace ridgeline::cuda {

inline constexpr std::size_t kSmallUpload = 256;

// REQUIRES: at most kSmallUpload bytes.
void upload_small(void* dst, const void* src, std::size_t bytes, Stream stream);

// Why this build's kernels cannot run on the current device; empty when they can.
[[nodiscard]] std::string no_code_reason();

}  // namespace ridgeline::cuda
