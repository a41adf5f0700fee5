#pragma once

// Which windows of a pool cover which pixels, as tables, so that kernels need no border cases.

#include <cstdint>
#include <vector>

#include "base/tensor.h"
#include "ops/pool.h"

namespace ridgeline::native {

// One axis of one pool.
struct PoolAxis {
  std::int64_t size = 0, windows = 0;
  std::int64_t kernel = 1, stride = 1, pad_before = 0, pad_after = 0, dilation = 1;

  // The pixel under a tap; outside [0, size) on the padding.
  [[nodiscard]] std::int64_t pixel(std::int64_t window, std::int64_t tap) const {
    return window * stride - pad_before + tap * dilation;
  }
};

// The taps [begin, end) of a window that lie on the image, and what an average divides by.
struct WindowTaps {
  std::int64_t begin = 0, end = 0;
  std::int64_t divisor = 1;

  friend bool operator==(const WindowTaps&, const WindowTaps&) = default;
};

// A window and the tap with which it covers a given pixel.
struct Cover {
  std::int64_t window = 0, tap = 0;
};

// For each pixel of an axis the windows that cover it, in order.
struct Covers {
  std::vector<std::int64_t> first;  // pixel p: list[first[p] .. first[p + 1])
  std::vector<Cover> list;

  [[nodiscard]] const Cover* begin(std::int64_t pixel) const {
    return list.data() + first[static_cast<std::size_t>(pixel)];
  }
  [[nodiscard]] const Cover* end(std::int64_t pixel) const { return begin(pixel + 1); }
};

[[nodiscard]] PoolAxis pool_rows_axis(const PoolAttributes& a, std::int64_t src, std::int64_t dst);
[[nodiscard]] PoolAxis pool_columns_axis(const PoolAttributes& a, std::int64_t src,
                                         std::int64_t dst);
[[nodiscard]] std::vector<WindowTaps> taps_of_windows(const PoolAxis& axis, bool count_padding);
[[nodiscard]] Covers covers_of_pixels(const PoolAxis& axis);

// An image tensor with its channels innermost. Of std::byte where the type of its elements, which
// strides count, is chosen later.
template <typename T>
struct ImageView {
  T* data = nullptr;
  std::int64_t sample = 0, row = 0, pixel = 0;  // strides

  ImageView() = default;
  ImageView(T* first, std::int64_t sample_stride, std::int64_t row_stride,
            std::int64_t pixel_stride)
      : data(first), sample(sample_stride), row(row_stride), pixel(pixel_stride) {}
  explicit ImageView(const Tensor& tensor)
      : data(tensor.as<T>()),
        sample(tensor.strides[0]),
        row(tensor.strides[2]),
        pixel(tensor.strides[3]) {}
  template <typename Element>
  [[nodiscard]] ImageView<Element> as() const {
    return {reinterpret_cast<Element*>(data), sample, row, pixel};
  }
  [[nodiscard]] T* at(std::int64_t n, std::int64_t h, std::int64_t w) const {
    return data + n * sample + h * row + w * pixel;
  }
};

}  // namespace ridgeline::native
