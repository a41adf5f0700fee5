#pragma once

// Convolutions with one channel to a group, in nhwc: fast ones for 3x3 windows with padding 1 and
// stride 1 or 2, others that walk down the rows, for 5x5, 7x7 and odd channel counts, and plain
// ones for the rest. docs/kernels/cuda-depthwise.md tells how they work.

#include "backends/cuda/launch.h"

namespace ridgeline::cuda {

struct DepthwiseAxis {
  int src = 0, dst = 0;  // sizes
  int kernel = 1, stride = 1, pad = 0, dilation = 1;
};

struct DepthwiseTask {
  DType dtype = DType::f32;
  std::int64_t samples = 0, channels = 0;
  DepthwiseAxis rows, columns;
  Rows src, dst;                   // or diff_src, diff_dst
  const void* weights = nullptr;   // [channel][tap]
  const float* bias = nullptr;     // forward; null: none
  int activation = kNoActivation;  // forward
  float slope = 0.0F;
  void* diff_weights = nullptr;
  float* parts = nullptr;  // room for depthwise_parts() times the weights
};

// Parts of the weights' gradient at most.
[[nodiscard]] std::int64_t depthwise_parts(std::int64_t weights);

// Whether the fast kernels take this window, strides and addresses.
[[nodiscard]] bool is_fast_depthwise(const DepthwiseTask& task);

// The same for those that walk; their addresses may be any.
[[nodiscard]] bool is_walked_depthwise(const DepthwiseTask& task);

void launch_depthwise(const DepthwiseTask& task, Stream stream);
void launch_depthwise_backward_data(const DepthwiseTask& task, Stream stream);
void launch_depthwise_backward_weights(const DepthwiseTask& task, Stream stream);

void launch_walked_depthwise(const DepthwiseTask& task, Stream stream);
void launch_walked_depthwise_backward_data(const DepthwiseTask& task, Stream stream);
void launch_walked_depthwise_backward_weights(const DepthwiseTask& task, Stream stream);

void launch_any_depthwise(const DepthwiseTask& task, Stream stream);
void launch_any_depthwise_backward_data(const DepthwiseTask& task, Stream stream);
void launch_any_depthwise_backward_weights(const DepthwiseTask& task, Stream stream);

}  // namespace ridgeline::cuda
