#pragma once

// Convolution forward and backward data for everything but depthwise; see
// docs/kernels/native-convolution.md.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/native/conv_blocking.h"
#include "backends/native/conv_geometry.h"
#include "backends/native/gemm.h"

namespace ridgeline::native::conv {

// Everything that is known before the tensors are.
struct DensePlan {
  struct PhasePlan {
    std::int64_t depth = 0;   // taps x src channels of a group
    std::int64_t blocks = 1;  // pieces of the depth whose weights fit the first-level cache
    std::int64_t first_block = 0, first_run = 0, first_pixel = 0, packed = 0;
  };

  Geometry geometry;
  int threads = 1;
  Panels panels;
  Bands bands;
  std::int64_t chunks = 1;  // pieces of the dst channels, when there are too few bands
  bool late = false;        // weights are packed block by block where they are used
  std::vector<PhasePlan> phases;
  // Sizes of what lies in the workspace.
  std::int64_t blocks = 0, runs = 0, pixels = 0, packed_floats = 0;
  std::int64_t late_floats = 0;    // of one block
  std::int64_t buffer_floats = 0;  // of one copied band
  std::size_t workspace_bytes = 0;
};

[[nodiscard]] DensePlan make_dense_plan(Geometry geometry, int threads);

// src and dst are nhwc with any pixel stride, weights plain.
void run_dense(const DensePlan& plan, const Tensor& src, const float* weights, const Tensor& dst,
               const Epilogue& epilogue, std::byte* workspace);

}  // namespace ridgeline::native::conv
