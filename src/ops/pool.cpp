#include "ops/pool.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "ops/adaptive_pool.h"
#include "ops/op.h"
#include "ops/reference.h"
#include "ops/work.h"

namespace ridgeline {

std::string_view name_of(PoolKind kind) {
  switch (kind) {
    case PoolKind::max:
      return "max";
    case PoolKind::average:
      return "average";
    case PoolKind::adaptive_average:
      return "adaptive_average";
  }
  return "?";
}

namespace {

const PoolAttributes& pool_of(const Attributes& attributes) {
  return std::get<PoolAttributes>(attributes);
}

// The windows along one axis.
struct Axis {
  std::int64_t size, kernel, stride, pad_before, pad_after, dilation;

  [[nodiscard]] std::int64_t position(std::int64_t window, std::int64_t tap) const {
    return window * stride - pad_before + tap * dilation;
  }
  // The window whose tap falls on `at`; -1 where there is none before the end.
  [[nodiscard]] std::int64_t window(std::int64_t at, std::int64_t tap) const {
    const std::int64_t start = at + pad_before - tap * dilation;
    return start < 0 || start % stride != 0 ? -1 : start / stride;
  }
  [[nodiscard]] bool inside(std::int64_t at) const { return at >= 0 && at < size; }

  // PyTorch's rule: with ceil_mode a last window may be cut off by the end, but must start inside
  // the image or the padding before it.
  [[nodiscard]] std::int64_t windows(bool ceil_mode) const {
    const std::int64_t spare = size + pad_before + pad_after - dilation * (kernel - 1) - 1;
    if (spare < 0) return 0;
    std::int64_t count = (spare + (ceil_mode ? stride - 1 : 0)) / stride + 1;
    if (ceil_mode && (count - 1) * stride >= size + pad_before) --count;
    return count;
  }
  [[nodiscard]] std::int64_t taps_inside(std::int64_t window) const {
    std::int64_t taps = 0;
    for (std::int64_t tap = 0; tap < kernel; ++tap) taps += inside(position(window, tap)) ? 1 : 0;
    return taps;
  }
  // Taps on the image or on its padding: a cut-off window has fewer than `kernel`.
  [[nodiscard]] std::int64_t taps_padded(std::int64_t window) const {
    std::int64_t taps = 0;
    for (std::int64_t tap = 0; tap < kernel; ++tap) {
      taps += position(window, tap) < size + pad_after ? 1 : 0;
    }
    return taps;
  }
};

Axis rows_of(const PoolAttributes& a, std::int64_t height) {
  return {height, a.kernel_h, a.stride_h, a.pad_top, a.pad_bottom, a.dilation_h};
}

Axis columns_of(const PoolAttributes& a, std::int64_t width) {
  return {width, a.kernel_w, a.stride_w, a.pad_left, a.pad_right, a.dilation_w};
}

void check_axis(std::string_view op, const Axis& axis, std::int64_t windows) {
  if (axis.kernel < 1 || axis.stride < 1 || axis.dilation < 1 || axis.pad_before < 0 ||
      axis.pad_after < 0) {
    bad_input(
        "{}: kernel {}, stride {} and dilation {} must be at least 1, padding {},{} not "
        "negative",
        op, axis.kernel, axis.stride, axis.dilation, axis.pad_before, axis.pad_after);
  }
  if (windows < 1) {
    bad_input("{}: kernel {} with dilation {} is larger than the padded image of {}", op,
              axis.kernel, axis.dilation, axis.size + axis.pad_before + axis.pad_after);
  }
  for (std::int64_t window = 0; window < windows; ++window) {
    if (axis.taps_inside(window) == 0) {
      bad_input(
          "{}: window {} of kernel {} (stride {}, padding {},{}, dilation {}) lies beside the "
          "image of {}; use less padding",
          op, window, axis.kernel, axis.stride, axis.pad_before, axis.pad_after, axis.dilation,
          axis.size);
    }
  }
}

Shape adaptive_dst_shape(std::string_view op, const PoolAttributes& a, const Shape& src) {
  if (a.dst_h < 1 || a.dst_w < 1 || src[2] < 1 || src[3] < 1) {
    bad_input("{}: src {} cannot be averaged to {}x{} pixels", op, src.text(), a.dst_h, a.dst_w);
  }
  return {src[0], src[1], a.dst_h, a.dst_w};
}

Shape dst_shape(std::string_view op, const PoolAttributes& a, const Shape& src) {
  if (a.kind == PoolKind::adaptive_average) return adaptive_dst_shape(op, a, src);
  const Axis rows = rows_of(a, src[2]), columns = columns_of(a, src[3]);
  // Guards the division by the stride as well.
  const std::int64_t height = rows.stride < 1 ? 0 : rows.windows(a.ceil_mode);
  const std::int64_t width = columns.stride < 1 ? 0 : columns.windows(a.ceil_mode);
  check_axis(op, rows, height);
  check_axis(op, columns, width);
  return {src[0], src[1], height, width};
}

DType position_type(const PoolAttributes& a) {
  return a.kernel_h * a.kernel_w <= 255 ? DType::u8 : DType::i32;
}

std::vector<OutputSpec> forward_outputs(const Attributes& attributes,
                                        std::span<const TensorSpec> inputs) {
  const PoolAttributes& a = pool_of(attributes);
  const TensorSpec& src = inputs[0];
  if (src.shape.rank() != 4) {
    bad_input("pool: src {} must be (N, C, H, W)", src.shape.text());
  }
  const Shape dst = dst_shape("pool", a, src.shape);
  if (a.kind != PoolKind::max) return {{{dst, src.dtype}}};
  return {{{dst, src.dtype}}, {{dst, position_type(a)}}};
}

std::vector<OutputSpec> backward_outputs(const Attributes& attributes,
                                         std::span<const TensorSpec> inputs) {
  const PoolAttributes& a = pool_of(attributes);
  const TensorSpec& diff_dst = inputs[0];
  const Shape diff_src = {diff_dst.shape[0], diff_dst.shape[1], a.src_h, a.src_w};
  const Shape expected = dst_shape("pool_backward", a, diff_src);
  if (diff_dst.shape != expected) {
    bad_input("pool_backward: diff_dst {} does not fit src {}; it must be {}",
              diff_dst.shape.text(), diff_src.text(), expected.text());
  }
  if (inputs.size() != (a.kind == PoolKind::max ? 2 : 1)) {
    bad_input("pool_backward: {} inputs; max needs diff_dst and positions, average diff_dst",
              inputs.size());
  }
  if (a.kind == PoolKind::max && inputs[1] != TensorSpec{expected, position_type(a)}) {
    bad_input("pool_backward: positions {} {} must be {} {}", inputs[1].shape.text(),
              name_of(inputs[1].dtype), expected.text(), name_of(position_type(a)));
  }
  return {{{diff_src, diff_dst.dtype}}};
}

// Every window's additions and a division, forward and backward.
Cost adaptive_work(const Shape& src, const Shape& dst) {
  const std::int64_t taps = adaptive_taps(src[2], dst[2]) * adaptive_taps(src[3], dst[3]);
  return elementwise(src[0] * src[1], taps + dst[2] * dst[3]);
}

// Comparisons or additions over the window; the average also divides.
Cost forward_work(const Attributes& attributes, std::span<const TensorSpec> inputs,
                  std::span<const OutputSpec> outputs) {
  const PoolAttributes& a = pool_of(attributes);
  if (a.kind == PoolKind::adaptive_average) {
    return adaptive_work(inputs[0].shape, outputs[0].spec.shape);
  }
  const std::int64_t division = a.kind == PoolKind::average ? 1 : 0;
  return elementwise(outputs[0].spec.shape.elements(), a.kernel_h * a.kernel_w + division);
}

// max: one addition for each diff_dst; average: one division, and an addition for each tap.
Cost backward_work(const Attributes& attributes, std::span<const TensorSpec> inputs,
                   std::span<const OutputSpec> outputs) {
  const PoolAttributes& a = pool_of(attributes);
  if (a.kind == PoolKind::adaptive_average) {
    return adaptive_work(outputs[0].spec.shape, inputs[0].shape);
  }
  return elementwise(inputs[0].shape.elements(),
                     a.kind == PoolKind::max ? 1 : a.kernel_h * a.kernel_w + 1);
}

void gradient(GradientContext& context) {
  if (!context.wanted(0)) return;
  PoolAttributes attributes = pool_of(context.attributes());
  attributes.src_h = context.spec(context.input(0)).shape[2];
  attributes.src_w = context.spec(context.input(0)).shape[3];
  std::vector<ValueId> inputs = {context.diff_output(0)};
  if (attributes.kind == PoolKind::max) inputs.push_back(context.output(1));
  context.give(0, context.emit(OpKind::pool_backward, attributes, std::move(inputs),
                               Phase::backward_data)[0]);
}

// Calls body(tap, h, w) for the taps of a window that lie on the image.
template <typename Body>
void for_each_tap(const Axis& rows, const Axis& columns, std::int64_t oh, std::int64_t ow,
                  Body&& body) {
  for (std::int64_t kh = 0; kh < rows.kernel; ++kh) {
    const std::int64_t h = rows.position(oh, kh);
    if (!rows.inside(h)) continue;
    for (std::int64_t kw = 0; kw < columns.kernel; ++kw) {
      const std::int64_t w = columns.position(ow, kw);
      if (columns.inside(w)) body(kh * columns.kernel + kw, h, w);
    }
  }
}

double divisor(const PoolAttributes& a, const Axis& rows, const Axis& columns, std::int64_t oh,
               std::int64_t ow) {
  return static_cast<double>(a.count_include_pad ? rows.taps_padded(oh) * columns.taps_padded(ow)
                                                 : rows.taps_inside(oh) * columns.taps_inside(ow));
}

std::int64_t position_at(const Tensor& positions, std::int64_t n, std::int64_t c, std::int64_t h,
                         std::int64_t w) {
  if (positions.spec.dtype == DType::u8) return Elements<std::uint8_t>(positions)(n, c, h, w);
  return Elements<std::int32_t>(positions)(n, c, h, w);
}

void set_position(const Tensor& positions, std::int64_t n, std::int64_t c, std::int64_t h,
                  std::int64_t w, std::int64_t position) {
  if (positions.data == nullptr) return;
  if (positions.spec.dtype == DType::u8) {
    const Elements<std::uint8_t> elements(positions);
    elements(n, c, h, w) = static_cast<std::uint8_t>(position);
  } else {
    const Elements<std::int32_t> elements(positions);
    elements(n, c, h, w) = static_cast<std::int32_t>(position);
  }
}

// Padding never wins; a NaN does, and stays.
template <typename T>
void forward_max(const PoolAttributes& a, const Tensor& src_tensor, const Tensor& dst_tensor,
                 const Tensor& positions) {
  const Elements<T> src(src_tensor), dst(dst_tensor);
  const Axis rows = rows_of(a, src_tensor.shape()[2]);
  const Axis columns = columns_of(a, src_tensor.shape()[3]);
  for_each_index(dst_tensor.shape(), [&](auto n, auto c, auto oh, auto ow) {
    T best = -std::numeric_limits<T>::infinity();
    std::int64_t position = -1;
    for_each_tap(rows, columns, oh, ow, [&](auto tap, auto h, auto w) {
      const T value = src(n, c, h, w);
      if (position < 0 || value > best || std::isnan(value)) {
        best = value;
        position = tap;
      }
    });
    dst(n, c, oh, ow) = best;
    set_position(positions, n, c, oh, ow, position);
  });
}

template <typename T>
void forward_average(const PoolAttributes& a, const Tensor& src_tensor, const Tensor& dst_tensor) {
  const Elements<T> src(src_tensor), dst(dst_tensor);
  const Axis rows = rows_of(a, src_tensor.shape()[2]);
  const Axis columns = columns_of(a, src_tensor.shape()[3]);
  for_each_index(dst_tensor.shape(), [&](auto n, auto c, auto oh, auto ow) {
    double sum = 0;
    for_each_tap(rows, columns, oh, ow, [&](auto, auto h, auto w) { sum += src(n, c, h, w); });
    dst(n, c, oh, ow) = static_cast<T>(sum / divisor(a, rows, columns, oh, ow));
  });
}

// Windows may overlap: a pixel's gradient is the sum over the windows that see it, one for each tap
// that falls on it.
template <typename T>
void backward(const PoolAttributes& a, const Tensor& diff_dst_tensor, const Tensor* positions,
              const Tensor& diff_src_tensor) {
  const Elements<T> diff_dst(diff_dst_tensor), diff_src(diff_src_tensor);
  const Shape& dst = diff_dst_tensor.shape();
  const Shape& src = diff_src_tensor.shape();
  const Axis rows = rows_of(a, src[2]), columns = columns_of(a, src[3]);
  for_each_index(src, [&](auto n, auto c, auto h, auto w) {
    double sum = 0.0;
    for (std::int64_t tap = 0; tap < a.kernel_h * a.kernel_w; ++tap) {
      const std::int64_t oh = rows.window(h, tap / a.kernel_w);
      const std::int64_t ow = columns.window(w, tap % a.kernel_w);
      if (oh < 0 || oh >= dst[2] || ow < 0 || ow >= dst[3]) continue;
      const double diff = diff_dst(n, c, oh, ow);
      if (positions == nullptr) {
        sum += diff / divisor(a, rows, columns, oh, ow);
      } else if (position_at(*positions, n, c, oh, ow) == tap) {
        sum += diff;
      }
    }
    diff_src(n, c, h, w) = static_cast<T>(sum);
  });
}

void forward_reference(const OpCall& call) {
  const PoolAttributes& a = pool_of(call.attributes);
  if (a.kind == PoolKind::adaptive_average) return adaptive_average(call);
  with_float_type(call.outputs[0].spec.dtype, [&](auto type) {
    using T = decltype(type);
    if (a.kind == PoolKind::max) {
      forward_max<T>(a, call.inputs[0], call.outputs[0], call.outputs[1]);
    } else {
      forward_average<T>(a, call.inputs[0], call.outputs[0]);
    }
  });
}

void backward_reference(const OpCall& call) {
  const PoolAttributes& a = pool_of(call.attributes);
  if (a.kind == PoolKind::adaptive_average) return adaptive_average_backward(call);
  const Tensor* positions = a.kind == PoolKind::max ? &call.inputs[1] : nullptr;
  with_float_type(call.outputs[0].spec.dtype, [&](auto type) {
    backward<decltype(type)>(a, call.inputs[0], positions, call.outputs[0]);
  });
}

std::string text(const Attributes& attributes) {
  const PoolAttributes& a = pool_of(attributes);
  if (a.kind == PoolKind::adaptive_average) {
    return fmt::format("{} {}x{}", name_of(a.kind), a.dst_h, a.dst_w);
  }
  std::string text = fmt::format("{} k{}x{} s{}x{} p{},{},{},{} d{}x{}", name_of(a.kind),
                                 a.kernel_h, a.kernel_w, a.stride_h, a.stride_w, a.pad_top,
                                 a.pad_left, a.pad_bottom, a.pad_right, a.dilation_h, a.dilation_w);
  if (a.ceil_mode) text += " ceil";
  if (a.kind == PoolKind::average && !a.count_include_pad) text += " exclude_pad";
  return text;
}

std::string backward_text(const Attributes& attributes) {
  const PoolAttributes& a = pool_of(attributes);
  return fmt::format("{} src{}x{}", text(attributes), a.src_h, a.src_w);
}

}  // namespace

const OpDef pool_op = {.name = "pool",
                       .outputs = forward_outputs,
                       .work = forward_work,
                       .gradient = gradient,
                       .reference = forward_reference,
                       .text = text};

const OpDef pool_backward_op = {.name = "pool_backward",
                                .outputs = backward_outputs,
                                .work = backward_work,
                                .gradient = nullptr,
                                .reference = backward_reference,
                                .text = backward_text};

}  // namespace ridgeline
