#include "ops/resize.h"

#include "base/error.h"
#include "ops/op.h"
#include "ops/reference.h"
#include "ops/work.h"

namespace ridgeline {
namespace {

const ResizeAttributes& resize_of(const Attributes& attributes) {
  return std::get<ResizeAttributes>(attributes);
}

std::vector<OutputSpec> forward_outputs(const Attributes& attributes,
                                        std::span<const TensorSpec> inputs) {
  const ResizeAttributes& a = resize_of(attributes);
  const Shape& src = inputs[0].shape;
  if (src.rank() != 4 || src[2] < 1 || src[3] < 1 || a.dst_h < 1 || a.dst_w < 1) {
    bad_input("resize: src {} cannot become {}x{} pixels", src.text(), a.dst_h, a.dst_w);
  }
  return {{{Shape{src[0], src[1], a.dst_h, a.dst_w}, inputs[0].dtype}}};
}

std::vector<OutputSpec> backward_outputs(const Attributes& attributes,
                                         std::span<const TensorSpec> inputs) {
  const ResizeAttributes& a = resize_of(attributes);
  const Shape& diff_dst = inputs[0].shape;
  if (diff_dst.rank() != 4 || diff_dst[2] != a.dst_h || diff_dst[3] != a.dst_w || a.src_h < 1 ||
      a.src_w < 1) {
    bad_input("resize_backward: diff_dst {} does not come of resizing {}x{} pixels to {}x{}",
              diff_dst.text(), a.src_h, a.src_w, a.dst_h, a.dst_w);
  }
  return {{{Shape{diff_dst[0], diff_dst[1], a.src_h, a.src_w}, inputs[0].dtype}}};
}

// One addition for each element of diff_dst.
Cost backward_work(const Attributes&, std::span<const TensorSpec> inputs,
                   std::span<const OutputSpec>) {
  return elementwise(inputs[0].shape.elements(), 1);
}

void gradient(GradientContext& context) {
  if (!context.wanted(0)) return;
  ResizeAttributes attributes = resize_of(context.attributes());
  const Shape& src = context.spec(context.input(0)).shape;
  attributes.src_h = src[2];
  attributes.src_w = src[3];
  context.give(0, context.emit(OpKind::resize_backward, attributes, {context.diff_output(0)},
                               Phase::backward_data)[0]);
}

template <typename T>
void forward(const Tensor& src_tensor, const Tensor& dst_tensor) {
  const Elements<T> src(src_tensor), dst(dst_tensor);
  const Shape &from = src_tensor.shape(), &to = dst_tensor.shape();
  for_each_index(to, [&](auto n, auto c, auto h, auto w) {
    dst(n, c, h, w) = src(n, c, h * from[2] / to[2], w * from[3] / to[3]);
  });
}

// The pixels of dst that one of src serves: [first, last) along an axis.
std::int64_t first_served(std::int64_t at, std::int64_t src, std::int64_t dst) {
  return (at * dst + src - 1) / src;
}

template <typename T>
void backward(const Tensor& diff_dst_tensor, const Tensor& diff_src_tensor) {
  const Elements<T> diff_dst(diff_dst_tensor), diff_src(diff_src_tensor);
  const Shape &to = diff_dst_tensor.shape(), &from = diff_src_tensor.shape();
  for_each_index(from, [&](auto n, auto c, auto h, auto w) {
    double sum = 0.0;
    const std::int64_t last_h = first_served(h + 1, from[2], to[2]);
    const std::int64_t last_w = first_served(w + 1, from[3], to[3]);
    for (std::int64_t y = first_served(h, from[2], to[2]); y < last_h; ++y) {
      for (std::int64_t x = first_served(w, from[3], to[3]); x < last_w; ++x) {
        sum += diff_dst(n, c, y, x);
      }
    }
    diff_src(n, c, h, w) = static_cast<T>(sum);
  });
}

void forward_reference(const OpCall& call) {
  with_float_type(call.outputs[0].spec.dtype,
                  [&](auto type) { forward<decltype(type)>(call.inputs[0], call.outputs[0]); });
}

void backward_reference(const OpCall& call) {
  with_float_type(call.outputs[0].spec.dtype,
                  [&](auto type) { backward<decltype(type)>(call.inputs[0], call.outputs[0]); });
}

std::string text(const Attributes& attributes) {
  const ResizeAttributes& a = resize_of(attributes);
  return fmt::format("{}x{}", a.dst_h, a.dst_w);
}

std::string backward_text(const Attributes& attributes) {
  const ResizeAttributes& a = resize_of(attributes);
  return fmt::format("{} src{}x{}", text(attributes), a.src_h, a.src_w);
}

}  // namespace

const OpDef resize_op = {.name = "resize",
                         .outputs = forward_outputs,
                         .work = no_work,
                         .gradient = gradient,
                         .reference = forward_reference,
                         .text = text};

const OpDef resize_backward_op = {.name = "resize_backward",
                                  .outputs = backward_outputs,
                                  .work = backward_work,
                                  .gradient = nullptr,
                                  .reference = backward_reference,
                                  .text = backward_text};

}  // namespace ridgeline
