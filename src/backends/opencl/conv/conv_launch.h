#pragma once

// What the launches of convolutions share.

#include "backends/opencl/conv/conv_run.h"
#include "ops/activation.h"

namespace ridgeline::opencl::conv {

// Work-items of a tile in local memory, along each side.
inline constexpr std::int64_t kTileSide = 16;

// Work-groups of kernels whose work-items are alone. A CPU runs the items of a group one after the
// other: single ones spread best over its cores, but to begin a group takes time, so that of many
// items some share one. (A driver may compile a kernel anew for each size.)
[[nodiscard]] inline std::int64_t group_size(Queue& queue, std::int64_t items) {
  constexpr std::int64_t kShared = 16, kGroupsPerUnit = 16;
  const Properties& properties = queue.context().properties();
  if (!properties.cpu) return 32;
  return items >= kShared * kGroupsPerUnit * properties.compute_units ? kShared : 1;
}
// Along x, for so many items along it.
[[nodiscard]] inline Size line_group(Queue& queue, std::int64_t items) {
  return {group_size(queue, items)};
}
// Of blocks of channels along x and pixels along y.
[[nodiscard]] inline Size pixel_group(Queue& queue, std::int64_t pixels) {
  if (!queue.context().properties().cpu) return {32};
  return {1, group_size(queue, pixels)};
}

[[nodiscard]] inline std::int64_t pixels_of(const Gather& gather) {
  return std::int64_t{gather.images} * gather.rows.count * gather.columns.count;
}

[[nodiscard]] inline Code gather_code(const Tile& tile, bool half) {
  if (tile.local) return {"kernels/conv_gather_tile.cl", "conv_gather_tile", tile.options(half)};
  return {"kernels/conv_gather_block.cl", "conv_gather_block", tile.options(half)};
}

[[nodiscard]] inline Code weights_code(const Tile& tile, bool half) {
  if (tile.local) return {"kernels/conv_weights_tile.cl", "conv_weights_tile", tile.options(half)};
  return {"kernels/conv_weights_block.cl", "conv_weights_block", tile.options(half)};
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
