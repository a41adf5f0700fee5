#pragma once

// Small uploads as kernel arguments: no pinned memory, and the host may go on at once.

#include <driver_types.h>

#include <cstddef>
#include <string>

namespace ridgeline::cuda {

inline constexpr std::size_t kSmallUpload = 256;

// Why it could not be started, as CUDA tells it. REQUIRES: at most kSmallUpload bytes.
[[nodiscard]] cudaError_t upload_small(void* dst, const void* src, std::size_t bytes,
                                       cudaStream_t stream);

// Why this build's kernels cannot run on the current device; empty when they can.
[[nodiscard]] std::string no_code_reason();

}  // namespace ridgeline::cuda
