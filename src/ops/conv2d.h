#pragma once

#include <cstdint>

namespace ridgeline {

struct OpDef;

// Cross-correlation as in PyTorch: src (N, C, H, W), weights (O, C / groups, kernel), dst (N, O,
// ...). Depthwise convolution is groups == C.
struct Conv2dAttributes {
  std::int64_t kernel_h = 1, kernel_w = 1;
  std::int64_t stride_h = 1, stride_w = 1;
  std::int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  std::int64_t dilation_h = 1, dilation_w = 1;
  std::int64_t groups = 1;
  // Height and width of src; read only by backward_data, which cannot tell them from diff_dst.
  std::int64_t src_h = 0, src_w = 0;
};

extern const OpDef conv2d_op;                   // (src, weights) -> dst
extern const OpDef conv2d_backward_data_op;     // (diff_dst, weights) -> diff_src
extern const OpDef conv2d_backward_weights_op;  // (src, diff_dst) -> diff_weights

}  // namespace ridgeline
