#pragma once

#include <cuda_runtime_api.h>

#include "base/error.h"

namespace ridgeline::cuda {

// Throws a failure with CUDA's own words unless the call succeeded.
inline void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) fail("CUDA: {}: {}", what, cudaGetErrorString(error));
}

}  // namespace ridgeline::cuda
