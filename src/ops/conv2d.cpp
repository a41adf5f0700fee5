#include "ops/conv2d.h"

#include "base/error.h"
#include "ops/op.h"
#include "ops/reference.h"
#include "ops/reference_sums.h"
#include "ops/work.h"

namespace ridgeline {
namespace {

const Conv2dAttributes& conv_of(const Attributes& attributes) {
  return std::get<Conv2dAttributes>(attributes);
}

void check_attributes(std::string_view op, const Conv2dAttributes& a) {
  if (a.kernel_h < 1 || a.kernel_w < 1 || a.stride_h < 1 || a.stride_w < 1 || a.dilation_h < 1 ||
      a.dilation_w < 1 || a.groups < 1) {
    bad_input("{}: kernel {}x{}, stride {}x{}, dilation {}x{} and groups {} must all be at least 1",
              op, a.kernel_h, a.kernel_w, a.stride_h, a.stride_w, a.dilation_h, a.dilation_w,
              a.groups);
  }
  if (a.pad_top < 0 || a.pad_left < 0 || a.pad_bottom < 0 || a.pad_right < 0) {
    bad_input("{}: padding {},{},{},{} must not be negative", op, a.pad_top, a.pad_left,
              a.pad_bottom, a.pad_right);
  }
}

// Height and width of dst for those of src.
struct Image {
  std::int64_t h, w;
};

Image dst_image(std::string_view op, const Conv2dAttributes& a, Image src) {
  const std::int64_t spare_h =
      src.h + a.pad_top + a.pad_bottom - a.dilation_h * (a.kernel_h - 1) - 1;
  const std::int64_t spare_w =
      src.w + a.pad_left + a.pad_right - a.dilation_w * (a.kernel_w - 1) - 1;
  if (spare_h < 0 || spare_w < 0) {
    bad_input("{}: kernel {}x{} with dilation {}x{} is larger than the padded image {}x{}", op,
              a.kernel_h, a.kernel_w, a.dilation_h, a.dilation_w, src.h + a.pad_top + a.pad_bottom,
              src.w + a.pad_left + a.pad_right);
  }
  return {spare_h / a.stride_h + 1, spare_w / a.stride_w + 1};
}

void check_weights(std::string_view op, const Conv2dAttributes& a, const Shape& weights) {
  if (weights.rank() != 4 || weights[2] != a.kernel_h || weights[3] != a.kernel_w ||
      weights[0] % a.groups != 0) {
    bad_input("{}: weights {} must be (O, C / groups, {}, {}) with O a multiple of groups {}", op,
              weights.text(), a.kernel_h, a.kernel_w, a.groups);
  }
}

std::vector<OutputSpec> forward_outputs(const Attributes& attributes,
                                        std::span<const TensorSpec> inputs) {
  const Conv2dAttributes& a = conv_of(attributes);
  const Shape& src = inputs[0].shape;
  const Shape& weights = inputs[1].shape;
  check_attributes("conv2d", a);
  check_weights("conv2d", a, weights);
  if (src.rank() != 4 || src[1] != weights[1] * a.groups) {
    bad_input("conv2d: src {} does not fit weights {} with groups {}; src must be (N, {}, H, W)",
              src.text(), weights.text(), a.groups, weights[1] * a.groups);
  }
  const Image dst = dst_image("conv2d", a, {src[2], src[3]});
  return {{{Shape{src[0], weights[0], dst.h, dst.w}, inputs[0].dtype}}};
}

std::vector<OutputSpec> backward_data_outputs(const Attributes& attributes,
                                              std::span<const TensorSpec> inputs) {
  const Conv2dAttributes& a = conv_of(attributes);
  const Shape& diff_dst = inputs[0].shape;
  const Shape& weights = inputs[1].shape;
  check_attributes("conv2d_backward_data", a);
  check_weights("conv2d_backward_data", a, weights);
  const Image dst = dst_image("conv2d_backward_data", a, {a.src_h, a.src_w});
  const Shape expected = {diff_dst[0], weights[0], dst.h, dst.w};
  if (diff_dst != expected) {
    bad_input(
        "conv2d_backward_data: diff_dst {} does not fit weights {} and src {}x{}; it must be {}",
        diff_dst.text(), weights.text(), a.src_h, a.src_w, expected.text());
  }
  return {{{Shape{diff_dst[0], weights[1] * a.groups, a.src_h, a.src_w}, inputs[0].dtype}}};
}

std::vector<OutputSpec> backward_weights_outputs(const Attributes& attributes,
                                                 std::span<const TensorSpec> inputs) {
  const Conv2dAttributes& a = conv_of(attributes);
  const Shape& src = inputs[0].shape;
  const Shape& diff_dst = inputs[1].shape;
  check_attributes("conv2d_backward_weights", a);
  if (src.rank() != 4 || diff_dst.rank() != 4 || src[1] % a.groups != 0 ||
      diff_dst[1] % a.groups != 0) {
    bad_input(
        "conv2d_backward_weights: src {} and diff_dst {} must be images with channels that "
        "groups {} divides",
        src.text(), diff_dst.text(), a.groups);
  }
  const Image dst = dst_image("conv2d_backward_weights", a, {src[2], src[3]});
  const Shape expected = {src[0], diff_dst[1], dst.h, dst.w};
  if (diff_dst != expected) {
    bad_input("conv2d_backward_weights: diff_dst {} does not fit src {}; it must be {}",
              diff_dst.text(), src.text(), expected.text());
  }
  return {{{Shape{diff_dst[1], src[1] / a.groups, a.kernel_h, a.kernel_w}, inputs[0].dtype}}};
}

// Every tap of every dst element counts, those that fall on padding too.
Cost taps(const Shape& dst, std::int64_t channels_of_group, const Conv2dAttributes& a) {
  return products(dst.elements() * channels_of_group * a.kernel_h * a.kernel_w);
}

Cost forward_work(const Attributes& attributes, std::span<const TensorSpec> inputs,
                  std::span<const OutputSpec> outputs) {
  return taps(outputs[0].spec.shape, inputs[1].shape[1], conv_of(attributes));
}

Cost backward_data_work(const Attributes& attributes, std::span<const TensorSpec> inputs,
                        std::span<const OutputSpec>) {
  return taps(inputs[0].shape, inputs[1].shape[1], conv_of(attributes));
}

Cost backward_weights_work(const Attributes& attributes, std::span<const TensorSpec> inputs,
                           std::span<const OutputSpec> outputs) {
  return taps(inputs[1].shape, outputs[0].spec.shape[1], conv_of(attributes));
}

void gradient(GradientContext& context) {
  const ValueId src = context.input(0), weights = context.input(1);
  const ValueId diff_dst = context.diff_output(0);
  if (context.wanted(1)) {
    context.give(1, context.emit(OpKind::conv2d_backward_weights, context.attributes(),
                                 {src, diff_dst}, Phase::backward_weights)[0]);
  }
  if (context.wanted(0)) {
    Conv2dAttributes attributes = conv_of(context.attributes());
    attributes.src_h = context.spec(src).shape[2];
    attributes.src_w = context.spec(src).shape[3];
    context.give(0, context.emit(OpKind::conv2d_backward_data, attributes, {diff_dst, weights},
                                 Phase::backward_data)[0]);
  }
}

// What a convolution sums up, in all three directions.
struct Extents {
  std::int64_t groups, group_src, group_dst;  // channels of a group
  Index3 taps;                                // of one dst element: channel, row and column
  Index3 pixels;                              // of dst: image, row and column
};

Extents extents_of(const Conv2dAttributes& a, const Shape& weights, const Shape& dst) {
  return {.groups = a.groups,
          .group_src = weights[1],
          .group_dst = weights[0] / a.groups,
          .taps = {weights[1], a.kernel_h, a.kernel_w},
          .pixels = {dst[0], dst[2], dst[3]}};
}

bool inside(std::int64_t position, std::int64_t size) { return position >= 0 && position < size; }

// What a tap of a group reads for a dst pixel; 0 on padding.
template <typename T>
double tapped(const Conv2dAttributes& a, const Elements<T>& src, const Shape& image,
              std::int64_t first_channel, const Index3& tap, const Index3& pixel) {
  const std::int64_t h = pixel.b * a.stride_h - a.pad_top + tap.b * a.dilation_h;
  const std::int64_t w = pixel.c * a.stride_w - a.pad_left + tap.c * a.dilation_w;
  if (!inside(h, image[2]) || !inside(w, image[3])) return 0;
  return src(pixel.a, first_channel + tap.a, h, w);
}

// rows x columns numbers in double; element(row, column) gives each. They last until the thread's
// next call: after the first steps of a training nothing is allocated.
template <typename Element>
const std::vector<double>& matrix(std::int64_t rows, const Index3& columns,
                                  const Element& element) {
  thread_local std::vector<double> numbers;
  numbers.resize(static_cast<std::size_t>(rows * columns.count()));
  double* const first = numbers.data();
  parallel_for(rows, 1, [&, first](auto begin, auto end) {
    for (std::int64_t row = begin; row < end; ++row) {
      double* next = first + row * columns.count();
      for (std::int64_t i = 0; i < columns.a; ++i) {
        for (std::int64_t j = 0; j < columns.b; ++j) {
          for (std::int64_t k = 0; k < columns.c; ++k) *next++ = element(row, Index3{i, j, k});
        }
      }
    }
  });
  return numbers;
}

template <typename T>
void forward(const Conv2dAttributes& a, const Tensor& src_tensor, const Tensor& weights_tensor,
             const Tensor& dst_tensor) {
  const Elements<T> src(src_tensor), weights(weights_tensor), dst(dst_tensor);
  const Extents e = extents_of(a, weights_tensor.shape(), dst_tensor.shape());
  for_each_sum(
      {.groups = e.groups, .rows = e.group_dst, .columns = e.pixels, .terms = e.taps},
      matrix(e.groups * e.group_dst, e.taps,
             [&](auto o, const Index3& tap) { return weights(o, tap.a, tap.b, tap.c); }),
      [&](auto group, const Index3& tap, const Index3& pixel) {
        return tapped(a, src, src_tensor.shape(), group * e.group_src, tap, pixel);
      },
      [&](auto group, auto o, const Index3& pixel, double sum) {
        dst(pixel.a, group * e.group_dst + o, pixel.b, pixel.c) = static_cast<T>(sum);
      });
}

// The dst position whose tap `k` reads src position `position`; -1 when no window does.
std::int64_t reader(std::int64_t position, std::int64_t k, std::int64_t pad, std::int64_t dilation,
                    std::int64_t stride, std::int64_t dst_size) {
  const std::int64_t start = position + pad - k * dilation;
  return start % stride == 0 && inside(start / stride, dst_size) ? start / stride : -1;
}

template <typename T>
void backward_data(const Conv2dAttributes& a, const Tensor& diff_dst_tensor,
                   const Tensor& weights_tensor, const Tensor& diff_src_tensor) {
  const Elements<T> diff_dst(diff_dst_tensor), weights(weights_tensor), diff_src(diff_src_tensor);
  const Shape& dst = diff_dst_tensor.shape();
  const Shape& src = diff_src_tensor.shape();
  const Extents e = extents_of(a, weights_tensor.shape(), dst);
  const Index3 readers = {e.group_dst, a.kernel_h, a.kernel_w};
  for_each_sum(
      {.groups = e.groups,
       .rows = e.group_src,
       .columns = {src[0], src[2], src[3]},
       .terms = readers},
      matrix(e.groups * e.group_src, readers,
             [&](auto c, const Index3& tap) {
               const std::int64_t first_output = c / e.group_src * e.group_dst;
               return weights(first_output + tap.a, c % e.group_src, tap.b, tap.c);
             }),
      [&](auto group, const Index3& tap, const Index3& pixel) -> double {
        const std::int64_t h = reader(pixel.b, tap.b, a.pad_top, a.dilation_h, a.stride_h, dst[2]);
        const std::int64_t w = reader(pixel.c, tap.c, a.pad_left, a.dilation_w, a.stride_w, dst[3]);
        if (h < 0 || w < 0) return 0;
        return diff_dst(pixel.a, group * e.group_dst + tap.a, h, w);
      },
      [&](auto group, auto c, const Index3& pixel, double sum) {
        diff_src(pixel.a, group * e.group_src + c, pixel.b, pixel.c) = static_cast<T>(sum);
      });
}

template <typename T>
void backward_weights(const Conv2dAttributes& a, const Tensor& src_tensor,
                      const Tensor& diff_dst_tensor, const Tensor& diff_weights_tensor) {
  const Elements<T> src(src_tensor), diff_dst(diff_dst_tensor), diff_weights(diff_weights_tensor);
  const Extents e = extents_of(a, diff_weights_tensor.shape(), diff_dst_tensor.shape());
  for_each_sum(
      {.groups = e.groups, .rows = e.group_dst, .columns = e.taps, .terms = e.pixels},
      matrix(e.groups * e.group_dst, e.pixels,
             [&](auto o, const Index3& pixel) { return diff_dst(pixel.a, o, pixel.b, pixel.c); }),
      [&](auto group, const Index3& pixel, const Index3& tap) {
        return tapped(a, src, src_tensor.shape(), group * e.group_src, tap, pixel);
      },
      [&](auto group, auto o, const Index3& tap, double sum) {
        diff_weights(group * e.group_dst + o, tap.a, tap.b, tap.c) = static_cast<T>(sum);
      });
}

void forward_reference(const OpCall& call) {
  with_float_type(call.outputs[0].spec.dtype, [&](auto type) {
    forward<decltype(type)>(conv_of(call.attributes), call.inputs[0], call.inputs[1],
                            call.outputs[0]);
  });
}

void backward_data_reference(const OpCall& call) {
  with_float_type(call.outputs[0].spec.dtype, [&](auto type) {
    backward_data<decltype(type)>(conv_of(call.attributes), call.inputs[0], call.inputs[1],
                                  call.outputs[0]);
  });
}

void backward_weights_reference(const OpCall& call) {
  with_float_type(call.outputs[0].spec.dtype, [&](auto type) {
    backward_weights<decltype(type)>(conv_of(call.attributes), call.inputs[0], call.inputs[1],
                                     call.outputs[0]);
  });
}

std::string text(const Attributes& attributes) {
  const Conv2dAttributes& a = conv_of(attributes);
  return fmt::format("k{}x{} s{}x{} p{},{},{},{} d{}x{} g{}", a.kernel_h, a.kernel_w, a.stride_h,
                     a.stride_w, a.pad_top, a.pad_left, a.pad_bottom, a.pad_right, a.dilation_h,
                     a.dilation_w, a.groups);
}

std::string backward_data_text(const Attributes& attributes) {
  const Conv2dAttributes& a = conv_of(attributes);
  return fmt::format("{} src{}x{}", text(attributes), a.src_h, a.src_w);
}

}  // namespace

const OpDef conv2d_op = {.name = "conv2d",
                         .outputs = forward_outputs,
                         .work = forward_work,
                         .gradient = gradient,
                         .reference = forward_reference,
                         .text = text};

const OpDef conv2d_backward_data_op = {.name = "conv2d_backward_data",
                                       .outputs = backward_data_outputs,
                                       .work = backward_data_work,
                                       .gradient = nullptr,
                                       .reference = backward_data_reference,
                                       .text = backward_data_text};

const OpDef conv2d_backward_weights_op = {.name = "conv2d_backward_weights",
                                          .outputs = backward_weights_outputs,
                                          .work = backward_weights_work,
                                          .gradient = nullptr,
                                          .reference = backward_weights_reference,
                                          .text = text};

}  // namespace ridgeline
