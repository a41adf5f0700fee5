#include "ops/bias.h"

#include "base/error.h"
#include "ops/op.h"
#include "ops/reference.h"
#include "ops/work.h"

namespace ridgeline {
namespace {

std::vector<OutputSpec> forward_outputs(const Attributes&, std::span<const TensorSpec> inputs) {
  const Shape& src = inputs[0].shape;
  const Shape& bias = inputs[1].shape;
  if (src.rank() < 2 || bias.rank() != 1 || src[1] != bias[0]) {
    bad_input(
        "bias: src {} does not fit bias {}; bias must be (C), one number for each of src's "
        "channels",
        src.text(), bias.text());
  }
  return {{inputs[0]}};
}

std::vector<OutputSpec> backward_outputs(const Attributes&, std::span<const TensorSpec> inputs) {
  const Shape& diff_dst = inputs[0].shape;
  if (diff_dst.rank() < 2) {
    bad_input("bias_backward: diff_dst {} has no channels; it must be (N, C) or (N, C, H, W)",
              diff_dst.text());
  }
  return {{{Shape{diff_dst[1]}, wide_type(inputs[0].dtype)}}};
}

// One addition an element, forward and backward.
Cost work(const Attributes&, std::span<const TensorSpec> inputs, std::span<const OutputSpec>) {
  return elementwise(inputs[0].shape.elements(), 1);
}

void gradient(GradientContext& context) {
  const ValueId diff_dst = context.diff_output(0);
  if (context.wanted(1)) {
    context.give(1,
                 context.emit(OpKind::bias_backward, {}, {diff_dst}, Phase::backward_weights)[0]);
  }
  if (context.wanted(0)) context.give(0, diff_dst);
}

template <typename T>
void forward(const Tensor& src_tensor, const Tensor& bias_tensor, const Tensor& dst_tensor) {
  const Elements<T> src(src_tensor), bias(bias_tensor), dst(dst_tensor);
  for_each_index(dst_tensor.shape(), [&](auto n, auto c, auto h, auto w) {
    dst(n, c, h, w) = src(n, c, h, w) + bias(c);
  });
}

template <typename T>
void backward(const Tensor& diff_dst_tensor, const Tensor& diff_bias_tensor) {
  const Elements<T> diff_dst(diff_dst_tensor), diff_bias(diff_bias_tensor);
  for (std::int64_t channel = 0; channel < diff_bias_tensor.shape()[0]; ++channel) {
    double sum = 0.0;
    for_each_in_channel(diff_dst_tensor.shape(), channel,
                        [&](auto n, auto c, auto h, auto w) { sum += diff_dst(n, c, h, w); });
    diff_bias(channel) = static_cast<T>(sum);
  }
}

void forward_reference(const OpCall& call) {
  with_float_type(call.outputs[0].spec.dtype, [&](auto type) {
    forward<decltype(type)>(call.inputs[0], call.inputs[1], call.outputs[0]);
  });
}

void backward_reference(const OpCall& call) {
  with_float_type(call.outputs[0].spec.dtype,
                  [&](auto type) { backward<decltype(type)>(call.inputs[0], call.outputs[0]); });
}

}  // namespace

const OpDef bias_op = {.name = "bias",
                       .outputs = forward_outputs,
                       .work = work,
                       .gradient = gradient,
                       .reference = forward_reference,
                       .text = nullptr,
                       .wide_inputs = 0b10};

const OpDef bias_backward_op = {.name = "bias_backward",
                                .outputs = backward_outputs,
                                .work = work,
                                .gradient = nullptr,
                                .reference = backward_reference,
                                .text = nullptr};

}  // namespace ridgeline
