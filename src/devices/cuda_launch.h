#pragma once

// What every file that starts CUDA kernels needs, with as few headers as possible.

#include <driver_types.h>

#include <cstdint>

namespace ridgeline::cuda {

using Stream = cudaStream_t;

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
