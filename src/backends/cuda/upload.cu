#include <cstring>

#include "backends/cuda/device.cuh"
#include "backends/cuda/upload.h"

namespace ridgeline::cuda {
namespace {

struct Small {
  unsigned char bytes[kSmallUpload];
};

__global__ void write_small(unsigned char* dst, Small src, int bytes) {
  const int i = static_cast<int>(threadIdx.x);
  if (i < bytes) dst[i] = src.bytes[i];
}

}  // namespace

void upload_small(void* dst, const void* src, std::size_t bytes, Stream stream) {
  Small small{};
  std::memcpy(small.bytes, src, bytes);
  write_small<<<1, kSmallUpload, 0, stream>>>(static_cast<unsigned char*>(dst), small,
                                              static_cast<int>(bytes));
  check_launch("write_small");
}

std::string no_code_reason() {
  cudaFuncAttributes attributes{};
  const cudaError_t error = cudaFuncGetAttributes(&attributes, write_small);
  if (error == cudaSuccess) return {};
  (void)cudaGetLastError();
  if (error != cudaErrorNoKernelImageForDevice && error != cudaErrorInvalidDeviceFunction) {
    return cudaGetErrorString(error);
  }
  const std::string own = std::to_string(device_limits().capability);
  return "this build has no code for compute capability " + own.substr(0, own.size() - 1) + "." +
         own.back() + "; configure it with -DCMAKE_CUDA_ARCHITECTURES=" + own;
}

}  // namespace ridgeline::cuda
