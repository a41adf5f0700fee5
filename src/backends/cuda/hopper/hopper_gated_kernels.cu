#include "backends/cuda/hopper/hopper_product.cuh"

namespace ridgeline::cuda::hopper {

void launch_gated(DType dtype, Tile tile, const Product& p, int blocks, Stream stream) {
  start_type<Role::gated>(dtype, tile, p, blocks, stream);
}

}  // namespace ridgeline::cuda::hopper
