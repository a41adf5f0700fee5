#pragma once

// The arguments of the convolutions' kernels, as the .cl files declare them.

#include <cstdint>
#include <limits>

namespace ridgeline::opencl::conv {

// As in kernels/conv_common.cl, which explains them.
struct Axis {
  std::int32_t count = 1, first = 0, dst_step = 1, origin = 0, src_step = 1;
  std::int32_t taps = 1, tap_step = 1, first_tap = 0, kernel_step = 1;
  std::int32_t src = 1, dst = 1;
};

struct Gather {
  Axis rows, columns;
  std::int32_t images = 0, groups = 1;
  std::int32_t depth = 0, width = 0;
  std::int32_t src_stride = 0, dst_stride = 0;
  std::int32_t kernel_w = 1;
  std::int32_t weights_pitch = 0, weights_tap = 0, weights_panel = 0, weights_group = 0;
  std::int32_t images_inner = 0;
  std::int32_t biased = 0;
  std::int32_t activation = -1;
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
  float slope = 0.0F;
};

// kernels/conv_pack.cl
struct Pack {
  std::int32_t groups = 1, joined = 1;
  std::int32_t depth = 0, width = 0;
  std::int32_t taps = 1, panels = 1, panel_width = 16;
  std::int32_t group_stride = 0, depth_stride = 0, width_stride = 0;
  std::int32_t zeros = 0;
};

// kernels/conv_weights_common.cl
struct Weights {
  Axis rows, columns;
  std::int32_t images = 0, groups = 1;
  std::int32_t src_channels = 0, dst_channels = 0;
  std::int32_t src_stride = 0, diff_stride = 0;
  std::int32_t lines = 0, parts = 1, images_inner = 0;
};

// kernels/conv_weights_sum.cl
struct Sum {
  std::int32_t groups = 1, joined = 1;
  std::int32_t parts = 1, taps = 1;
  std::int32_t src_channels = 0, dst_channels = 0;
  std::int32_t out_pitch = 0;
};

}  // namespace ridgeline::opencl::conv
