// What stands for the provider of ranks on GPUs in a build without CUDA or without NCCL's header.

#include "backends/nccl/backend.h"
#include "base/error.h"
#include "devices/device.h"

namespace ridgeline {

namespace nccl {

std::string unavailable() {
  const std::string reason = cuda_unavailable();
  return !reason.empty() ? reason : "this build has no NCCL: its header nccl.h was not found";
}
std::string version_text() { return "no NCCL"; }
bool can_be_recorded() { return false; }
void watch_over(Device&) {}
void all_reduce(Ranks&, std::span<float>, void*) { fail("{}", unavailable()); }

}  // namespace nccl

const Backend nccl_backend = {
    .name = "nccl",
    .device = "cuda",
    .unavailable = nccl::unavailable,
    .version = nccl::version_text,
    .rows = []() -> std::span<const KernelRow> { return {}; },
    .make_reorder = [](const TensorSpec&, const Layout&,
                       const Layout&) { return std::unique_ptr<Kernel>(); }};

}  // namespace ridgeline
