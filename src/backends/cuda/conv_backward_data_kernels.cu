#include "backends/cuda/conv_gather.cuh"

namespace ridgeline::cuda::conv {

void launch_backward_data(Arithmetic arithmetic, GatherTile tile, const Gather& p, Grid grid,
                          Stream stream) {
  switch (arithmetic) {
    case Arithmetic::f32:
      return start_single_gather<false>(tile, p, grid, stream);
    case Arithmetic::tf32:
      return start_tensor_gather<float, false>(tile, p, grid, stream);
    case Arithmetic::bf16:
      return start_tensor_gather<bf16, false>(tile, p, grid, stream);
    case Arithmetic::f16:
      return start_tensor_gather<f16, false>(tile, p, grid, stream);
  }
}

}  // namespace ridgeline::cuda::conv
