#pragma once

// The border between rows (.cpp, the project's usual headers) and kernels (.cu, as few headers as
// possible: they are compiled twice). A launch function takes plain structs and a stream, starts
// its kernels there and returns. Nothing is allocated, nothing waits.

#include <cstdint>

#include "base/dtype.h"
#include "devices/cuda_launch.h"
#include "ops/activation.h"

namespace ridgeline::cuda {

// A tensor's elements as rows of contiguous channels: pixels by channels for an nhwc image, samples
// by features for rank 2. `stride` is the distance of two rows in elements: more than `width` for a
// slice.
struct Rows {
  void* data = nullptr;
  std::int64_t rows = 0, width = 0, stride = 0;
};

// No activation.
inline constexpr int kNoActivation = -1;

}  // namespace ridgeline::cuda
