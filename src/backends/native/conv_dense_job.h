#pragma once

// One run of a dense convolution: the plan, the tensors, and the plan's lists for these tensors in
// the workspace. Internal to conv_dense.cpp and conv_dense_plan.cpp.

#include <cstddef>
#include <cstdint>

#include "backends/native/conv_dense.h"

namespace ridgeline::native::conv {

// Where a dst pixel of a band reads and writes, from the beginning of the band.
struct Pixel {
  std::int64_t src = 0, dst = 0;
};

// A piece of a phase's depth.
struct Block {
  std::int64_t depth = 0;  // where its weights begin among those packed early
  std::int64_t first_run = 0, runs = 0;
  std::int64_t run_length = 0;                   // where all runs have the same, else 0
  std::int64_t first_channel = 0, channels = 0;  // of src; packed late: all taps of these
};

struct DenseJob {
  const DensePlan* plan = nullptr;
  SrcLayout layout;
  const float* src = nullptr;
  const float* weights = nullptr;
  float* dst = nullptr;
  Strides src_strides{}, dst_strides{};
  Epilogue epilogue;
  Block* blocks = nullptr;
  Run* runs = nullptr;
  Pixel* pixels = nullptr;
  float* packed = nullptr;   // all weights, or one block for each thread when packed late
  float* buffers = nullptr;  // copies of bands: one for each thread, or all bands
};

// Places the job's own arrays in the workspace; returns the bytes they take.
std::size_t carve(const DensePlan& plan, std::byte* workspace, DenseJob& job);

// Fills in blocks, runs and pixels, which depend on the strides of the tensors.
void list_work(const DenseJob& job);

}  // namespace ridgeline::native::conv
