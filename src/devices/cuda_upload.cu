#include <cstring>

#include "devices/cuda_upload.h"

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

cudaError_t upload_small(void* dst, const void* src, std::size_t bytes, cudaStream_t stream) {
  Small small{};
  std::memcpy(small.bytes, src, bytes);
  write_small<<<1, kSmallUpload, 0, stream>>>(static_cast<unsigned char*>(dst), small,
                                              static_cast<int>(bytes));
  return cudaGetLastError();
}

std::string no_code_reason() {
  cudaFuncAttributes attributes{};
  const cudaError_t error = cudaFuncGetAttributes(&attributes, write_small);
  if (error == cudaSuccess) return {};
  (void)cudaGetLastError();
  if (error != cudaErrorNoKernelImageForDevice && error != cudaErrorInvalidDeviceFunction) {
    return cudaGetErrorString(error);
  }
  int device = 0, major = 0, minor = 0;
  (void)cudaGetDevice(&device);
  (void)cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  (void)cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  const std::string own = std::to_string(major), rest = std::to_string(minor);
  return "this build has no code for compute capability " + own + "." + rest +
         "; configure it with -DCMAKE_CUDA_ARCHITECTURES=" + own + rest;
}

}  // namespace ridgeline::cuda
