#pragma once

// The border between rows (.cpp, the project's usual headers) and kernels (.cu, as few headers as
// possible: they are compiled twice). A launch function takes plain structs and a stream, starts
// its kernels there and returns. Nothing is allocated, nothing waits.

#include <driver_types.h>

#include <cstdint>

#include "base/dtype.h"
#include "ops/activation.h"

namespace ridgeline::cuda {

using Stream = cudaStream_t;

// A tensor's elements as rows of contiguous channels: pixels by channels for an nhwc image, samples
// by features for rank 2. `stride` is the distance of two rows in elements: more than `width` for a
// slice.
struct Rows {
  void* data = nullptr;
  std::int64_t rows = 0, width = 0, stride = 0;
};

// No activation.
inline constexpr int kNoActivation = -1;

// Throws a failure with CUDA's own words when the last launch could not be started.
void check_launch(const char* kernel);

// What kernels are shaped by; of the current device.
struct DeviceLimits {
  int multiprocessors = 0;
  int capability = 0;  // 90 for 9.0
  std::int64_t shared_bytes_per_block = 0;
  std::int64_t l2_bytes = 0;
};
[[nodiscard]] const DeviceLimits& device_limits();

}  // namespace ridgeline::cuda
