#include "ops/conv2d_touched.h"

#include <algorithm>
#include <vector>

namespace ridgeline {
namespace {

// One axis of the image.
struct Axis {
  std::int64_t src, dst, kernel, stride, pad, dilation;
};

Axis rows(const Conv2dAttributes& a, const Shape& src, const Shape& dst) {
  return {src[2], dst[2], a.kernel_h, a.stride_h, a.pad_top, a.dilation_h};
}

Axis columns(const Conv2dAttributes& a, const Shape& src, const Shape& dst) {
  return {src[3], dst[3], a.kernel_w, a.stride_w, a.pad_left, a.dilation_w};
}

// Calls `visit` with the src position of every tap that lies inside.
template <typename Visit>
void each_tap_inside(const Axis& axis, Visit&& visit) {
  for (std::int64_t d = 0; d < axis.dst; ++d) {
    for (std::int64_t k = 0; k < axis.kernel; ++k) {
      const std::int64_t at = d * axis.stride - axis.pad + k * axis.dilation;
      if (at >= 0 && at < axis.src) visit(at);
    }
  }
}

double share_inside(const Axis& axis) {
  std::int64_t inside = 0;
  each_tap_inside(axis, [&](std::int64_t) { ++inside; });
  return static_cast<double>(inside) / static_cast<double>(axis.dst * axis.kernel);
}

double share_read(const Axis& axis) {
  std::vector<char> read(static_cast<std::size_t>(axis.src));
  each_tap_inside(axis, [&](std::int64_t at) { read[static_cast<std::size_t>(at)] = 1; });
  return static_cast<double>(std::count(read.begin(), read.end(), 1)) /
         static_cast<double>(axis.src);
}

}  // namespace

double taps_inside(const Conv2dAttributes& attributes, const Shape& src, const Shape& dst) {
  return share_inside(rows(attributes, src, dst)) * share_inside(columns(attributes, src, dst));
}

double src_pixels_read(const Conv2dAttributes& attributes, const Shape& src, const Shape& dst) {
  return share_read(rows(attributes, src, dst)) * share_read(columns(attributes, src, dst));
}

}  // namespace ridgeline
