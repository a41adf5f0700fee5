#include "data/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "data/resize_axis.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "data/resize.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef RIDGELINE_RESIZE_SHARED_
#define RIDGELINE_RESIZE_SHARED_
namespace ridgeline {

inline constexpr int kWeightBits = kResizeWeightBits;
inline constexpr std::int32_t kHalf = 1 << (kWeightBits - 1);
inline constexpr std::size_t kRowAlignment = 64;  // rows are padded for whole vectors

// One row of the result along rows: `count` pixels, each from `taps[i]` pixels of src.
struct RowCall {
  const std::uint8_t* src;
  const std::int32_t* first;  // in pixels
  const std::int32_t* taps;
  const std::int32_t* weights;
  int most;
  int count;
  std::uint8_t* dst;
};

// One row of the result along columns: the weighted sum of `taps` rows.
struct ColumnCall {
  const std::uint8_t* src;
  std::size_t stride;
  const std::int32_t* weights;
  int taps;
  std::size_t bytes;  // a multiple of kRowAlignment
  std::uint8_t* dst;
};

}  // namespace ridgeline
#endif

HWY_BEFORE_NAMESPACE();
namespace ridgeline {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A vector is one pixel, where vectors have four lanes.
void along_row(const RowCall& call) {
  const hn::CappedTag<std::int32_t, 4> d;
  const hn::Rebind<std::uint8_t, decltype(d)> bytes;
  const std::int32_t* weights = call.weights;
  for (int i = 0; i < call.count; ++i, weights += call.most) {
    const std::uint8_t* src = call.src + std::size_t{4} * static_cast<std::size_t>(call.first[i]);
    for (std::size_t c = 0; c < 4; c += hn::Lanes(d)) {
      auto sum = hn::Set(d, kHalf);
      for (int k = 0; k < call.taps[i]; ++k) {
        const auto pixel = hn::PromoteTo(d, hn::LoadU(bytes, src + 4 * k + c));
        sum = hn::Add(sum, hn::Mul(pixel, hn::Set(d, weights[k])));
      }
      const auto rounded = hn::DemoteTo(bytes, hn::ShiftRight<kWeightBits>(sum));
      hn::StoreU(rounded, bytes, call.dst + 4 * i + c);
    }
  }
}

// A vector is a stretch of the row.
void along_columns(const ColumnCall& call) {
  const hn::CappedTag<std::int32_t, kRowAlignment / 4> d;
  const hn::Rebind<std::uint8_t, decltype(d)> bytes;
  const std::size_t step = hn::Lanes(d);
  for (std::size_t i = 0; i < call.bytes; i += 2 * step) {
    auto low = hn::Set(d, kHalf), high = low;
    const std::uint8_t* src = call.src + i;
    for (int k = 0; k < call.taps; ++k, src += call.stride) {
      const auto weight = hn::Set(d, call.weights[k]);
      low = hn::Add(low, hn::Mul(hn::PromoteTo(d, hn::LoadU(bytes, src)), weight));
      high = hn::Add(high, hn::Mul(hn::PromoteTo(d, hn::LoadU(bytes, src + step)), weight));
    }
    hn::StoreU(hn::DemoteTo(bytes, hn::ShiftRight<kWeightBits>(low)), bytes, call.dst + i);
    hn::StoreU(hn::DemoteTo(bytes, hn::ShiftRight<kWeightBits>(high)), bytes, call.dst + i + step);
  }
}

// One row of pixels to three planes.
void split_row(const std::uint8_t* src, std::size_t width, std::uint8_t* red, std::uint8_t* green,
               std::uint8_t* blue) {
  const hn::ScalableTag<std::uint8_t> d;
  const std::size_t step = hn::Lanes(d);
  std::size_t x = 0;
  for (; x + step <= width; x += step) {
    hn::Vec<decltype(d)> r, g, b, rest;
    hn::LoadInterleaved4(d, src + 4 * x, r, g, b, rest);
    hn::StoreU(r, d, red + x);
    hn::StoreU(g, d, green + x);
    hn::StoreU(b, d, blue + x);
  }
  for (; x < width; ++x) {
    red[x] = src[4 * x];
    green[x] = src[4 * x + 1];
    blue[x] = src[4 * x + 2];
  }
}

void join_row(const std::uint8_t* red, const std::uint8_t* green, const std::uint8_t* blue,
              std::size_t width, std::uint8_t* dst) {
  const hn::ScalableTag<std::uint8_t> d;
  const std::size_t step = hn::Lanes(d);
  std::size_t x = 0;
  for (; x + step <= width; x += step) {
    hn::StoreInterleaved4(hn::LoadU(d, red + x), hn::LoadU(d, green + x), hn::LoadU(d, blue + x),
                          hn::Set(d, 255), d, dst + 4 * x);
  }
  for (; x < width; ++x) {
    dst[4 * x] = red[x];
    dst[4 * x + 1] = green[x];
    dst[4 * x + 2] = blue[x];
    dst[4 * x + 3] = 255;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace ridgeline
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline {
namespace {

HWY_EXPORT(along_row);
HWY_EXPORT(along_columns);
HWY_EXPORT(split_row);
HWY_EXPORT(join_row);

std::size_t padded(std::size_t bytes) {
  return (bytes + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
}

// Pixels of one axis that can have a weight in the window, one more on each side against rounding.
void needed_along(double start, double length, int resized, int first, int count, int& begin,
                  int& size) {
  const double scale = length / resized;
  const double reach = std::max(scale, 1.0) + 1.0;
  const double from = start + (first + 0.5) * scale - reach;
  const double to = start + (first + count - 0.5) * scale + reach;
  begin = static_cast<int>(std::floor(std::max(from, start)));
  size = static_cast<int>(std::ceil(std::min(to, start + length))) - begin;
}

}  // namespace

PixelArea Resize::needed() const {
  PixelArea area;
  needed_along(box.x, box.width, resized_width, x, width, area.x, area.width);
  needed_along(box.y, box.height, resized_height, y, height, area.y, area.height);
  return area;
}

void ResizeAxis::fill(double start, double stretch, int resized, int window, int size, int pixels) {
  const double scale = stretch / resized;
  const double reach = std::max(scale, 1.0);
  // Nothing outside the box counts, as if it had been cut out.
  const int lowest = std::max(0, static_cast<int>(std::floor(start)));
  const int highest = std::min(pixels, static_cast<int>(std::ceil(start + stretch)));
  most = static_cast<int>(std::ceil(reach)) * 2 + 1;
  first.resize(static_cast<std::size_t>(size));
  count.resize(static_cast<std::size_t>(size));
  weights.resize(static_cast<std::size_t>(size) * static_cast<std::size_t>(most));
  begin = highest;
  end = lowest;
  for (int i = 0; i < size; ++i) {
    const double centre = start + (window + i + 0.5) * scale;
    const int from = std::max(lowest, static_cast<int>(centre - reach + 0.5));
    const int upto = std::min(highest, static_cast<int>(centre + reach + 0.5));
    const auto index = static_cast<std::size_t>(i);
    first[index] = from;
    count[index] = upto - from;
    std::int32_t* to = weights.data() + index * static_cast<std::size_t>(most);
    const auto weight_of = [&](int at) {
      return std::max(0.0, 1.0 - std::abs((at - centre + 0.5) * (1.0 / reach)));
    };
    double sum = 0.0;
    for (int at = from; at < upto; ++at) sum += weight_of(at);
    for (int at = from; at < upto; ++at) {
      const double weight = weight_of(at) * (1.0 / sum);
      to[at - from] = static_cast<std::int32_t>(0.5 + weight * (1 << kWeightBits));
    }
    begin = std::min(begin, from);
    end = std::max(end, upto);
  }
}

PixelView Resizer::run(const PixelView& image, const Resize& resize) {
  columns_.fill(resize.box.x, resize.box.width, resize.resized_width, resize.x, resize.width,
                image.width);
  rows_.fill(resize.box.y, resize.box.height, resize.resized_height, resize.y, resize.height,
             image.height);
  const std::size_t stride = padded(std::size_t{4} * static_cast<std::size_t>(resize.width));
  const auto height = static_cast<std::size_t>(resize.height);
  const auto kept = static_cast<std::size_t>(rows_.end - rows_.begin);
  if (between_.size() < stride * kept) between_.resize(stride * kept);
  if (result_.size() < stride * height) result_.resize(stride * height);

  for (std::size_t y = 0; y < kept; ++y) {
    HWY_DYNAMIC_DISPATCH(along_row)
    ({.src = image.data + (static_cast<std::size_t>(rows_.begin) + y) * image.stride,
      .first = columns_.first.data(),
      .taps = columns_.count.data(),
      .weights = columns_.weights.data(),
      .most = columns_.most,
      .count = resize.width,
      .dst = between_.data() + y * stride});
  }
  for (std::size_t y = 0; y < height; ++y) {
    HWY_DYNAMIC_DISPATCH(along_columns)
    ({.src = between_.data() + static_cast<std::size_t>(rows_.first[y] - rows_.begin) * stride,
      .stride = stride,
      .weights = rows_.weights.data() + y * static_cast<std::size_t>(rows_.most),
      .taps = rows_.count[y],
      .bytes = stride,
      .dst = result_.data() + y * stride});
  }
  return {.data = result_.data(), .stride = stride, .width = resize.width, .height = resize.height};
}

void to_planes(const PixelView& image, int orientation, int channels,
               std::span<std::uint8_t> planes) {
  const auto width = static_cast<std::size_t>(image.width);
  const auto height = static_cast<std::size_t>(image.height);
  const std::size_t plane = width * height;
  if (orientation == 1 && channels == 3) {
    for (std::size_t y = 0; y < height; ++y) {
      std::uint8_t* to = planes.data() + y * width;
      HWY_DYNAMIC_DISPATCH(split_row)
      (image.data + y * image.stride, width, to, to + plane, to + 2 * plane);
    }
    return;
  }
  const ImageTurn turn = turn_of(orientation);
  for (std::size_t y = 0; y < height; ++y) {
    for (std::size_t x = 0; x < width; ++x) {
      const std::uint8_t* pixel = image.data + y * image.stride + 4 * x;
      const std::size_t to_x = turn.mirrored_x ? width - 1 - x : x;
      const std::size_t to_y = turn.mirrored_y ? height - 1 - y : y;
      const std::size_t at = turn.transposed ? to_x * height + to_y : to_y * width + to_x;
      for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c) {
        planes[c * plane + at] = pixel[c];
      }
    }
  }
}

PixelView from_planes(std::span<const std::uint8_t> planes, int channels, int height, int width,
                      std::vector<std::uint8_t>& buffer) {
  const auto columns = static_cast<std::size_t>(width), rows = static_cast<std::size_t>(height);
  const std::size_t plane = columns * rows;
  if (buffer.size() < 4 * plane) buffer.resize(4 * plane);
  const std::uint8_t* red = planes.data();
  const std::uint8_t* green = channels == 3 ? red + plane : red;
  const std::uint8_t* blue = channels == 3 ? red + 2 * plane : red;
  for (std::size_t y = 0; y < rows; ++y) {
    const std::size_t at = y * columns;
    HWY_DYNAMIC_DISPATCH(join_row)
    (red + at, green + at, blue + at, columns, buffer.data() + 4 * at);
  }
  return {.data = buffer.data(), .stride = 4 * columns, .width = width, .height = height};
}

}  // namespace ridgeline
#endif
