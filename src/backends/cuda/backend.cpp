// The cuda backend: our own kernels for NVIDIA graphics processors, on nothing but CUDA's runtime.

#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include <vector>

#include "backends/cuda/rows.h"
#include "backends/registry.h"
#include "build_info.h"
#include "devices/device.h"

namespace ridgeline {
namespace cuda {
namespace {

std::string version() {
  return fmt::format("ridgeline {} cuda {}.{}", build_info::version, CUDART_VERSION / 1000,
                     CUDART_VERSION % 1000 / 10);
}

// Rows whose patterns begin with the same op come with the larger pattern first.
std::span<const KernelRow> all_rows() {
  static const std::vector<KernelRow> rows = [] {
    std::vector<KernelRow> list;
    for (const std::span<const KernelRow> some :
         {mlp_step_rows(), small_cnn_rows(), loss_rows(), depthwise_rows(), hopper_gradient_rows(),
          conv_rows(), batch_norm_backward_rows(), batch_norm_rows(), layer_norm_rows(),
          pool_rows(), activation_backward_rows(), block_end_rows(), elementwise_rows(),
          multiply_rows(), move_rows(), copy_rows(), normalize_rows(), gradient_rows(),
          optimizer_rows()}) {
      list.insert(list.end(), some.begin(), some.end());
    }
    return list;
  }();
  return rows;
}

}  // namespace
}  // namespace cuda

const Backend cuda_backend = {.name = "cuda",
                              .device = "cuda",
                              .unavailable = cuda_unavailable,
                              .version = cuda::version,
                              .rows = cuda::all_rows,
                              .make_reorder = cuda::make_reorder,
                              .gradients_in_any_layout = true,
                              .by_default = Backend::Default::in_auto,
                              .usual_share = 0.2};

}  // namespace ridgeline
