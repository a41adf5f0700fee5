// The cudnn backend: convolutions through cuDNN, matrix products through cuBLASLt, on the device of
// the cuda backend, which computes everything else.

#include <vector>

#include "backends/registry.h"
#include "devices/device.h"

#if __has_include(<cudnn_graph.h>) && __has_include(<cublasLt.h>)
#include "backends/cudnn/library.h"
#include "backends/cudnn/product_rates.h"
#include "backends/cudnn/rows.h"
#define RIDGELINE_HAS_CUDNN 1
#else
#define RIDGELINE_HAS_CUDNN 0
#endif

namespace ridgeline {
namespace cudnn {
namespace {

#if RIDGELINE_HAS_CUDNN

std::string unavailable() {
  if (std::string reason = cuda_unavailable(); !reason.empty()) return reason;
  return library_problem();
}

std::string version() { return library_problem().empty() ? library_version() : "none"; }

std::span<const KernelRow> rows() {
  static const std::vector<KernelRow> all = [] {
    std::vector<KernelRow> list;
    for (const std::span<const KernelRow> some : {conv_rows(), linear_rows()}) {
      list.insert(list.end(), some.begin(), some.end());
    }
    return list;
  }();
  return all;
}

#else

std::string unavailable() { return "built without cuDNN's headers"; }
std::string version() { return "none"; }
std::vector<double> product_rates(Device&, Precision, int, double) { return {}; }
std::span<const KernelRow> rows() { return {}; }

#endif

// All values lie in the cuda backend's layouts.
std::unique_ptr<Kernel> make_reorder(const TensorSpec&, const Layout&, const Layout&) {
  return nullptr;
}

}  // namespace
}  // namespace cudnn

const Backend cudnn_backend = {.name = "cudnn",
                               .device = "cuda",
                               .unavailable = cudnn::unavailable,
                               .version = cudnn::version,
                               .rows = cudnn::rows,
                               .make_reorder = cudnn::make_reorder,
                               .gradients_in_any_layout = true,
                               .completed_by = &cuda_backend,
                               .measures = true,
                               .product_rates = cudnn::product_rates};

}  // namespace ridgeline
