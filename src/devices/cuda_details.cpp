#include <cuda_runtime_api.h>

#include "devices/gpu_details.h"

namespace ridgeline {
namespace {

std::optional<int> attribute(cudaDeviceAttr which, int index) {
  int value = 0;
  if (cudaDeviceGetAttribute(&value, which, index) == cudaSuccess) return value;
  (void)cudaGetLastError();  // or the next call would report it
  return std::nullopt;
}

}  // namespace

GpuDetails gpu_details(int index) {
  GpuDetails details;
  if (const auto ecc = attribute(cudaDevAttrEccEnabled, index)) details.ecc = *ecc != 0;
  const auto khz = attribute(cudaDevAttrMemoryClockRate, index);
  if (khz && *khz > 0) details.memory_mhz = *khz / 1e3;
  const auto bits = attribute(cudaDevAttrGlobalMemoryBusWidth, index);
  if (bits && *bits > 0) details.memory_bus_bits = *bits;
  return details;
}

}  // namespace ridgeline
