#include "devices/cuda_launch.h"

#include <cuda_runtime_api.h>

#include <map>

#include "base/error.h"

namespace ridgeline::cuda {

void check_launch(const char* kernel) {
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) fail("{} could not be started: {}", kernel, cudaGetErrorString(error));
}

const DeviceLimits& device_limits() {
  static std::map<int, DeviceLimits> known;
  int device = 0;
  ensure(cudaGetDevice(&device) == cudaSuccess, "there is no CUDA device");
  const auto [entry, is_new] = known.try_emplace(device);
  if (is_new) {
    const auto ask = [&](cudaDeviceAttr attribute) {
      int value = 0;
      ensure(cudaDeviceGetAttribute(&value, attribute, device) == cudaSuccess,
             "CUDA device {} does not answer", device);
      return value;
    };
    entry->second = {
        ask(cudaDevAttrMultiProcessorCount),
        ask(cudaDevAttrComputeCapabilityMajor) * 10 + ask(cudaDevAttrComputeCapabilityMinor),
        ask(cudaDevAttrMaxSharedMemoryPerBlockOptin), ask(cudaDevAttrL2CacheSize)};
  }
  return entry->second;
}

}  // namespace ridgeline::cuda
