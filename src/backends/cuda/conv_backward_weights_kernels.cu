#include "backends/cuda/conv_weights.cuh"

namespace ridgeline::cuda::conv {

void launch_backward_weights(Arithmetic arithmetic, WeightsTile tile, const Weights& p, Grid grid,
                             Stream stream) {
  switch (arithmetic) {
    case Arithmetic::f32:
      return start_single_weights(tile, p, grid, stream);
    case Arithmetic::tf32:
      return start_tensor_weights<float>(tile, p, grid, stream);
    case Arithmetic::bf16:
      return start_tensor_weights<bf16>(tile, p, grid, stream);
    case Arithmetic::f16:
      return start_tensor_weights<f16>(tile, p, grid, stream);
  }
}

}  // namespace ridgeline::cuda::conv
