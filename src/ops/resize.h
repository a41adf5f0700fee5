#pragma once

#include <cstdint>

namespace ridgeline {

struct OpDef;

// Another height and width by the nearest pixel, with PyTorch's rule: pixel i of dst is pixel
// floor(i * src / dst) of src along each axis.
struct ResizeAttributes {
  std::int64_t dst_h = 1, dst_w = 1;
  // Height and width of src; read only by resize_backward, which cannot tell them from diff_dst.
  std::int64_t src_h = 0, src_w = 0;
};

extern const OpDef resize_op;           // (src) -> dst
extern const OpDef resize_backward_op;  // (diff_dst) -> diff_src

}  // namespace ridgeline
