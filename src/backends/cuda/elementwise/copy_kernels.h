#pragma once

// Copies that change no number: rows between strides, and images between plain and nhwc.

#include "backends/cuda/launch.h"

namespace ridgeline::cuda {

// Rows of `width` elements; strides in elements.
struct CopyPiece {
  const void* src = nullptr;
  void* dst = nullptr;
  std::int64_t rows = 0, width = 0, src_stride = 0, dst_stride = 0;
};

inline constexpr int kCopyPieces = 32;  // at most in one launch

void launch_copy(const CopyPiece* pieces, int count, int element_bytes, Stream stream);

// An image in both layouts. A channel of a sample in plain is a row of pixels.
struct TransposeTask {
  const void* src = nullptr;
  void* dst = nullptr;
  int element_bytes = 4;
  bool to_nhwc = true;
  std::int64_t samples = 0, channels = 0, pixels = 0;
  std::int64_t plain_sample_stride = 0, nhwc_pixel_stride = 0;
};

void launch_transpose(const TransposeTask& task, Stream stream);

}  // namespace ridgeline::cuda
