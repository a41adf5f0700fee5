#pragma once

// Gradients of convolution weights for everything but depthwise; see
// docs/kernels/native-convolution.md.

#include <cstddef>
#include <cstdint>

#include "backends/native/conv_blocking.h"
#include "backends/native/conv_geometry.h"

namespace ridgeline::native::conv {

// Threads form a grid: some split the dst channels, the others the pixels. Those that split pixels
// each have partial sums of their own, which are added up in a fixed order at the end. When no op
// splits pixels, a thread stores the gradient of a few panels as soon as it is complete.
struct WeightsPlan {
  Geometry geometry;  // of the forward convolution; its dst is diff_dst
  int threads = 1;
  Panels panels;
  Bands bands;
  int unit_parts = 1, pixel_parts = 1;
  std::int64_t depth = 0;         // taps x src channels of a group: rows of the gradient
  std::int64_t block_pixels = 1;  // whose panel of diff_dst fits the first-level cache
  std::int64_t at_once = 1;       // panels whose sums stay in the second-level cache
  std::int64_t unit_floats = 0;   // sums of one panel
  std::int64_t part_floats = 0;   // sums of one part of the pixels; of one thread if it has all
  std::int64_t buffer_floats = 0;
  std::size_t workspace_bytes = 0;
};

[[nodiscard]] WeightsPlan make_weights_plan(Geometry geometry, int threads);

// src and diff_dst are nhwc with any pixel stride; diff_weights is plain.
void run_weights(const WeightsPlan& plan, const Tensor& src, const Tensor& diff_dst,
                 float* diff_weights, std::byte* workspace);

}  // namespace ridgeline::native::conv
