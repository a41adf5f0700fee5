#pragma once

#include <cstdint>
#include <string_view>

namespace ridgeline {

struct OpDef;

enum class PoolKind : std::uint8_t {
  max,
  average,
  adaptive_average,  // windows follow from the height and width of dst
};
[[nodiscard]] std::string_view name_of(PoolKind kind);

// Windows as in PyTorch. Global average pooling is an average pool whose window is the image.
struct PoolAttributes {
  PoolKind kind = PoolKind::max;
  std::int64_t kernel_h = 1, kernel_w = 1;
  std::int64_t stride_h = 1, stride_w = 1;
  std::int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  std::int64_t dilation_h = 1, dilation_w = 1;
  bool ceil_mode = false;
  bool count_include_pad = true;  // average: padding counts in the divisor
  // Height and width of src; read only by pool_backward, which cannot tell them from diff_dst.
  std::int64_t src_h = 0, src_w = 0;
  // Height and width of dst; read only by adaptive_average, to which the window means nothing.
  std::int64_t dst_h = 0, dst_w = 0;
};

// max: the second output holds, for each dst element, the position of its maximum in the window
// (row * kernel_w + column, the first one of equals): u8 where the window has at most 255 elements,
// else i32.
extern const OpDef pool_op;           // (src) -> dst [, positions]
extern const OpDef pool_backward_op;  // (diff_dst [, positions]) -> diff_src

}  // namespace ridgeline
