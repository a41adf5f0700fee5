#pragma once

// The windows and loops of PoolKind::adaptive_average: as many windows along an axis as are asked
// for, of one pixel more or less than their share, and overlapping where the axis does not divide.

#include <cstdint>

namespace ridgeline {

struct OpCall;

// The pixels [begin, end) of a window, by PyTorch's rule.
struct AdaptiveWindow {
  std::int64_t begin = 0, end = 0;

  [[nodiscard]] std::int64_t size() const { return end - begin; }
};
[[nodiscard]] constexpr AdaptiveWindow adaptive_window(std::int64_t window, std::int64_t src,
                                                       std::int64_t dst) {
  return {window * src / dst, ((window + 1) * src + dst - 1) / dst};
}
// The windows [begin, end) that a pixel lies in.
[[nodiscard]] constexpr AdaptiveWindow adaptive_windows_of(std::int64_t pixel, std::int64_t src,
                                                           std::int64_t dst) {
  return {pixel * dst / src, ((pixel + 1) * dst + src - 1) / src};
}

// The pixels of all windows along an axis together.
[[nodiscard]] std::int64_t adaptive_taps(std::int64_t src, std::int64_t dst);

void adaptive_average(const OpCall& call);
void adaptive_average_backward(const OpCall& call);

}  // namespace ridgeline
