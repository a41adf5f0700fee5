#include "backends/cuda/hopper/hopper_product.cuh"

namespace ridgeline::cuda::hopper {

void launch_forward(DType dtype, Tile tile, const Product& p, int blocks, Stream stream) {
  start_type<Role::forward>(dtype, tile, p, blocks, stream);
}

}  // namespace ridgeline::cuda::hopper
