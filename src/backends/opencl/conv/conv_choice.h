#pragma once

// Which tile computes a convolution on the current device: the fastest of some, by measuring. A
// choice is made once for a problem and remembered, in the process and in a file. Without measuring
// it is the first candidate that the device can run.

#include <cstdint>
#include <string>
#include <vector>

#include "backends/opencl/conv/conv_plan.h"

namespace ridgeline::opencl::conv {

// What may be chosen: all, or the one that asks least of a device.
enum class Tiles : std::uint8_t { all, plain };

// Why the current device can run none of these: the compiler's own words, or what it lacks; empty
// where it can. `half`: as in Geometry.
[[nodiscard]] std::string refuse_gather(Tiles tiles, bool half);
[[nodiscard]] std::string refuse_weights(Tiles tiles, bool half);

// Whether the kernels for few pixels compute a convolution: on CPUs, unless tiles are offered.
[[nodiscard]] bool takes_few(const Geometry& geometry, Tiles tiles);
[[nodiscard]] GatherPlan choose_forward(const Geometry& geometry, Tiles tiles, bool measure);
[[nodiscard]] GatherPlan choose_backward_data(const Geometry& geometry, Tiles tiles, bool measure);
[[nodiscard]] WeightsPlan choose_backward_weights(const Geometry& geometry, Tiles tiles,
                                                  bool measure);

// From now on these are tried, in this order, whatever the device; empty: those for it. Tests only.
void offer_tiles(std::vector<Tile> tiles);

}  // namespace ridgeline::opencl::conv
