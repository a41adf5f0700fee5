#pragma once

// Pooling over images in nhwc, and its gradient with the activation's and the bias's behind it.

#include "backends/cuda/launch.h"

namespace ridgeline::cuda {

// The windows along one axis, as ops/pool.cpp has them.
struct PoolAxis {
  int size = 0, windows = 0;
  int kernel = 1, stride = 1, pad_before = 0, pad_after = 0, dilation = 1;
};

struct PoolTask {
  bool is_max = true, count_padding = true;
  PoolAxis rows, columns;
  std::int64_t samples = 0, channels = 0;
  DType dtype = DType::f32;  // of images
  DType position_type = DType::u8;
  // Forward reads src and writes dst; null positions are left out.
  Rows src, dst, positions;
  // Backward reads diff_dst and positions and writes diff_src.
  Rows diff_dst, diff_src;
  // Backward through an activation: what its gradient is computed from.
  int activation = kNoActivation;
  float slope = 0.0F;
  Rows kept;
  // Sums of diff_src over pixels, in f32; null: left out.
  float* diff_bias = nullptr;
  // Forward: of pool_workspace_bytes. Backward: room for kPoolParts sums of every channel, where
  // there is a diff_bias.
  float* parts = nullptr;
};

[[nodiscard]] std::size_t pool_workspace_bytes(const PoolTask& task);
void launch_pool(const PoolTask& task, Stream stream);

// Parts of the bias's gradient at most.
inline constexpr int kPoolParts = 1024;
void launch_pool_backward(const PoolTask& task, Stream stream);

}  // namespace ridgeline::cuda
