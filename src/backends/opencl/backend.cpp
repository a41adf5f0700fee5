// The opencl backend: our own kernels for devices of any maker, on nothing but OpenCL 1.2.

#include <fmt/core.h>

#include <vector>

#include "backends/opencl/conv/conv_rows.h"
#include "backends/opencl/rows.h"
#include "backends/registry.h"
#include "build_info.h"
#include "devices/opencl.h"

namespace ridgeline {
namespace opencl {
namespace {

std::string version() { return fmt::format("ridgeline {}", build_info::version); }

// Rows whose patterns begin with the same op come with the larger pattern first.
std::span<const KernelRow> all_rows() {
  static const std::vector<KernelRow> rows = [] {
    std::vector<KernelRow> list;
    for (const std::span<const KernelRow> some :
         {conv_rows(), batch_norm_rows(), layer_norm_rows(), pool_rows(), elementwise_rows(),
          move_rows(), loss_rows(), gradient_rows(), optimizer_rows()}) {
      list.insert(list.end(), some.begin(), some.end());
    }
    return list;
  }();
  return rows;
}

}  // namespace
}  // namespace opencl

const Backend opencl_backend = {.name = "opencl",
                                .device = "opencl",
                                .unavailable = opencl_unavailable,
                                .version = opencl::version,
                                .rows = opencl::all_rows,
                                .make_reorder = opencl::make_reorder,
                                .gradients_in_any_layout = true,
                                .by_default = Backend::Default::alone,
                                .usual_share = 0.2};

}  // namespace ridgeline
