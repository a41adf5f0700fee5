// What stands for CUDA in a build without it.

#include "base/error.h"
#include "devices/cuda_bus.h"
#include "devices/device.h"

namespace ridgeline {
namespace {

constexpr const char* kReason =
    "this build has no CUDA: no CUDA toolkit (nvcc) was found when it was configured";

}  // namespace

std::string cuda_unavailable() { return kReason; }

std::vector<GpuInfo> cuda_devices() { return {}; }

std::vector<std::string> cuda_bus_ids() { return {}; }

std::unique_ptr<Device> make_cuda_device(int index) {
  bad_input("device 'cuda:{}' cannot be used: {}", index, kReason);
}

}  // namespace ridgeline
