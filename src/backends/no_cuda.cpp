// What stands for the backends of CUDA in a build without it.

#include "backends/registry.h"
#include "devices/device.h"

namespace ridgeline {
namespace {

std::string reason() { return cuda_unavailable(); }
std::string no_version() { return "none"; }
std::span<const KernelRow> no_rows() { return {}; }
std::unique_ptr<Kernel> no_reorder(const TensorSpec&, const Layout&, const Layout&) {
  return nullptr;
}

}  // namespace

const Backend cuda_backend = {.name = "cuda",
                              .device = "cuda",
                              .unavailable = reason,
                              .version = no_version,
                              .rows = no_rows,
                              .make_reorder = no_reorder,
                              .by_default = Backend::Default::in_auto};

const Backend cudnn_backend = {.name = "cudnn",
                               .device = "cuda",
                               .unavailable = reason,
                               .version = no_version,
                               .rows = no_rows,
                               .make_reorder = no_reorder};

}  // namespace ridgeline
