#pragma once

// What the launches of convolutions share.

#include "backends/opencl/conv/conv_run.h"
#include "ops/activation.h"

namespace ridgeline::opencl::conv {

// Work-items of a tile in local memory, along each side.
inline constexpr std::int64_t kTileSide = 16;

// Work-groups of kernels whose work-items are alone. A CPU runs the items of a group one after the
// other: large ones bring nothing there, and single ones spread best over its cores.
[[nodiscard]] inline Size line_group(Queue& queue) {
  return {queue.context().properties().cpu ? 1 : 32};
}

[[nodiscard]] inline std::int64_t pixels_of(const Gather& gather) {
  return std::int64_t{gather.images} * gather.rows.count * gather.columns.count;
}

[[nodiscard]] inline Code gather_code(const Tile& tile) {
  if (tile.local) return {"kernels/conv_gather_tile.cl", "conv_gather_tile", tile.options()};
  return {"kernels/conv_gather_block.cl", "conv_gather_block", tile.options()};
}

[[nodiscard]] inline Code weights_code(const Tile& tile) {
  if (tile.local) return {"kernels/conv_weights_tile.cl", "conv_weights_tile", tile.options()};
  return {"kernels/conv_weights_block.cl", "conv_weights_block", tile.options()};
}

inline void set_epilogue(Gather& gather, const Epilogue& epilogue) {
  gather.biased = epilogue.bias != nullptr ? 1 : 0;
  if (epilogue.activation < 0) return;
  const auto kind = static_cast<ActivationKind>(epilogue.activation);
  if (kind == ActivationKind::relu || kind == ActivationKind::relu6) {
    gather.low = 0.0F;
    if (kind == ActivationKind::relu6) gather.high = 6.0F;
  } else {
    gather.activation = epilogue.activation;
    gather.slope = epilogue.slope;
  }
}

}  // namespace ridgeline::opencl::conv
