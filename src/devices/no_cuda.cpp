// What stands for CUDA in a build without it.

#include "backends/registry.h"
#include "base/error.h"
#include "devices/cuda_bus.h"
#include "devices/device.h"

namespace ridgeline {
namespace {

constexpr const char* kReason =
    "this build has no CUDA: no CUDA toolkit (nvcc) was found when it was configured";

std::string reason() { return kReason; }
std::string no_version() { return "none"; }
std::span<const KernelRow> no_rows() { return {}; }
std::unique_ptr<Kernel> no_reorder(const TensorSpec&, const Layout&, const Layout&) {
  return nullptr;
}

}  // namespace

std::string cuda_unavailable() { return kReason; }

std::vector<GpuInfo> cuda_devices() { return {}; }

std::vector<std::string> cuda_bus_ids() { return {}; }

std::unique_ptr<Device> make_cuda_device(int index) {
  bad_input("device 'cuda:{}' cannot be used: {}", index, kReason);
}

const Backend cuda_backend = {.name = "cuda",
                              .device = "cuda",
                              .unavailable = reason,
                              .version = no_version,
                              .rows = no_rows,
                              .make_reorder = no_reorder};

const Backend cudnn_backend = {.name = "cudnn",
                               .device = "cuda",
                               .unavailable = reason,
                               .version = no_version,
                               .rows = no_rows,
                               .make_reorder = no_reorder};

}  // namespace ridgeline
