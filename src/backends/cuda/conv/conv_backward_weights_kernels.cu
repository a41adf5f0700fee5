#include "backends/cuda/conv/conv_weights.cuh"

namespace ridgeline::cuda::conv {
namespace {

template <typename T, Unit unit>
void start_tile(WeightsTile tile, const Weights& p, Grid grid, Stream stream) {
  constexpr Load kPacks = Load::packs, kElements = Load::elements;
  switch (tile) {
    case WeightsTile::wide:
      return start_weights<Config<T, WideTile, unit, kPacks, kPacks>>(p, grid, stream);
    case WeightsTile::flat:
      return start_weights<Config<T, FlatTile, unit, kPacks, kPacks>>(p, grid, stream);
    case WeightsTile::tall:
      return start_weights<Config<T, TallTile, unit, kPacks, kPacks>>(p, grid, stream);
    case WeightsTile::small:
      return start_weights<Config<T, SmallTile, unit, kPacks, kPacks>>(p, grid, stream);
    case WeightsTile::src_elements:
      return start_weights<Config<T, SmallElementTile, unit, kPacks, kElements>>(p, grid, stream);
    case WeightsTile::elements:
      return start_weights<Config<T, SmallElementTile, unit, kElements, kElements>>(p, grid,
                                                                                    stream);
  }
}

}  // namespace

void launch_backward_weights(Arithmetic arithmetic, WeightsTile tile, const Weights& p, Grid grid,
                             Stream stream) {
  switch (arithmetic) {
    case Arithmetic::f32:
      return start_tile<float, Unit::single>(tile, p, grid, stream);
    case Arithmetic::tf32:
      return start_tile<float, Unit::tensor>(tile, p, grid, stream);
    case Arithmetic::bf16:
      return start_tile<bf16, Unit::tensor>(tile, p, grid, stream);
    case Arithmetic::f16:
      return start_tile<f16, Unit::tensor>(tile, p, grid, stream);
  }
}

}  // namespace ridgeline::cuda::conv
