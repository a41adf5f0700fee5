#pragma once

// Maps of tensors for the copy engine. Boxes are 64 elements of 2 bytes wide, swizzled.

#include <cuda.h>

#include <cstdint>

#include "backends/cuda/launch.h"

namespace ridgeline::cuda::hopper {

// Whether the driver knows such maps.
[[nodiscard]] bool has_maps();

// One side of the pixels that taps gather for: pixel i reads from origin + i * step on.
struct GatherAxis {
  int size = 0;   // of the images that are read
  int count = 0;  // pixels gathered for
  int origin = 0, step = 1;

  // The last pixel that tap 0 reads, from the images' end, as the copy engine counts it.
  [[nodiscard]] int upper() const { return (count - 1) * step + 1 - size + origin; }
};

[[nodiscard]] CUtensorMap map_of_rows(const Rows& rows, DType dtype, int box_rows);
// Weights [outputs][taps][channels].
[[nodiscard]] CUtensorMap map_of_weights(const void* weights, int channels, int taps, int outputs,
                                         DType dtype, int box_outputs);
// Images whose pixels are `rows`; a copy brings `pixels` of them.
[[nodiscard]] CUtensorMap map_of_images(const Rows& rows, const GatherAxis& h, const GatherAxis& w,
                                        DType dtype, int pixels);

}  // namespace ridgeline::cuda::hopper
