#pragma once

// Kernels that finish images for batches.

#include <driver_types.h>

#include <cstddef>
#include <cstdint>

#include "data/image_steps.h"

namespace ridgeline::cuda {

// All in the device's memory.
struct FinishCall {
  const ImageJob* jobs = nullptr;
  int count = 0;
  const std::uint8_t* parts = nullptr;
  std::uint8_t* scratch = nullptr;
  std::uint8_t* dst = nullptr;  // `sample_bytes` for each job: `channels` planes
  std::size_t sample_bytes = 0;
  int channels = 3;
};

// Makes the pixels of all jobs but the finished ones. Why it could not be started, as CUDA tells
// it.
[[nodiscard]] cudaError_t finish_images(const FinishCall& call, cudaStream_t stream);

}  // namespace ridgeline::cuda
