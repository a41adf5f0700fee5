#include "backends/native/pool_geometry.h"

namespace ridgeline::native {

PoolAxis pool_rows_axis(const PoolAttributes& a, std::int64_t src, std::int64_t dst) {
  return {src, dst, a.kernel_h, a.stride_h, a.pad_top, a.pad_bottom, a.dilation_h};
}

PoolAxis pool_columns_axis(const PoolAttributes& a, std::int64_t src, std::int64_t dst) {
  return {src, dst, a.kernel_w, a.stride_w, a.pad_left, a.pad_right, a.dilation_w};
}

std::vector<WindowTaps> taps_of_windows(const PoolAxis& axis, bool count_padding) {
  std::vector<WindowTaps> windows;
  for (std::int64_t window = 0; window < axis.windows; ++window) {
    WindowTaps taps{.begin = axis.kernel, .end = 0};
    std::int64_t padded = 0;
    for (std::int64_t tap = 0; tap < axis.kernel; ++tap) {
      const std::int64_t pixel = axis.pixel(window, tap);
      if (pixel < axis.size + axis.pad_after) ++padded;
      if (pixel < 0 || pixel >= axis.size) continue;
      if (taps.end == 0) taps.begin = tap;
      taps.end = tap + 1;
    }
    taps.divisor = count_padding ? padded : taps.end - taps.begin;
    windows.push_back(taps);
  }
  return windows;
}

Covers covers_of_pixels(const PoolAxis& axis) {
  Covers covers;
  covers.first.push_back(0);
  for (std::int64_t pixel = 0; pixel < axis.size; ++pixel) {
    for (std::int64_t window = 0; window < axis.windows; ++window) {
      const std::int64_t distance = pixel - axis.pixel(window, 0);
      if (distance < 0 || distance % axis.dilation != 0) continue;
      const std::int64_t tap = distance / axis.dilation;
      if (tap < axis.kernel) covers.list.push_back({window, tap});
    }
    covers.first.push_back(static_cast<std::int64_t>(covers.list.size()));
  }
  return covers;
}

}  // namespace ridgeline::native
