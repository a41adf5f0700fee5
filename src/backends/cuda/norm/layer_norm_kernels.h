#pragma once

// Normalisation within a sample: over the channels of each pixel (layer norm), or over a share of
// the channels and all pixels (group norm).

#include "backends/cuda/launch.h"

namespace ridgeline::cuda {

struct LayerNorm {
  DType dtype = DType::f32;
  Rows src, dst;            // dst: null where it is not read
  std::int64_t groups = 0;  // 0: layer norm
  std::int64_t pixels = 1;  // of an image
  const float *scale = nullptr, *shift = nullptr;
  double epsilon = 0.0;
  // For each row, or for each group of a sample; null where they are not read.
  float *mean = nullptr, *inverse = nullptr;
};
void launch_layer_norm(const LayerNorm& task, Stream stream);
void launch_group_norm(const LayerNorm& task, Stream stream);

struct LayerNormBackward {
  DType dtype = DType::f32;
  Rows diff, src, diff_src;  // diff_src: null where it is not read
  std::int64_t groups = 0, pixels = 1;
  const float *scale = nullptr, *mean = nullptr, *inverse = nullptr;
  float *diff_scale = nullptr, *diff_shift = nullptr;  // null where they are not read
  float* workspace = nullptr;                          // of layer_norm_bytes
};
// Each block leaves a part of the sums over the rows.
[[nodiscard]] std::size_t layer_norm_bytes(std::int64_t channels);
void launch_layer_norm_backward(const LayerNormBackward& task, Stream stream);
void launch_group_norm_backward(const LayerNormBackward& task, Stream stream);

// The second stage of both: of each part the sums of diff * normalised src, then those of diff.
void add_norm_parts(const LayerNormBackward& task, int parts, Stream stream);

}  // namespace ridgeline::cuda
