#include "backends/cuda/conv/conv_gather.cuh"

namespace ridgeline::cuda::conv {

void launch_forward(Arithmetic arithmetic, GatherTile tile, const Gather& p, Grid grid,
                    Stream stream) {
  start_any<true>(arithmetic, tile, p, grid, stream);
}

}  // namespace ridgeline::cuda::conv
