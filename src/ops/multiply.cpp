#include "ops/multiply.h"

#include "base/error.h"
#include "ops/op.h"
#include "ops/reference.h"
#include "ops/work.h"

namespace ridgeline {

Broadcast broadcast_of(const Shape& a, const Shape& b) {
  if (a == b) return Broadcast::none;
  if (a.rank() == 4 && b == Shape{a[0], a[1], 1, 1}) return Broadcast::image;
  if (a.rank() >= 2 && b == Shape{a[1]}) return Broadcast::channel;
  bad_input("multiply: {} does not go with {}; it must have that shape, or be (N, C, 1, 1) or (C)",
            b.text(), a.text());
}

namespace {

// Numbers of a channel are parameters, and stay wide.
DType type_of_b(Broadcast broadcast, DType a) {
  return broadcast == Broadcast::channel ? wide_type(a) : a;
}

std::vector<OutputSpec> forward_outputs(const Attributes&, std::span<const TensorSpec> inputs) {
  const TensorSpec &a = inputs[0], &b = inputs[1];
  const DType expected = type_of_b(broadcast_of(a.shape, b.shape), a.dtype);
  if (b.dtype != expected) {
    bad_input("multiply: {} {} with {} {}; the second must be {}", a.shape.text(), name_of(a.dtype),
              b.shape.text(), name_of(b.dtype), name_of(expected));
  }
  return {{a}};
}

std::vector<OutputSpec> backward_outputs(const Attributes& attributes,
                                         std::span<const TensorSpec> inputs) {
  const Broadcast broadcast = std::get<MultiplyAttributes>(attributes).b;
  const TensorSpec &diff_dst = inputs[0], &a = inputs[1];
  if (diff_dst != a) {
    bad_input("multiply_backward: diff_dst {} and a {} must have the same shape and type",
              diff_dst.shape.text(), a.shape.text());
  }
  const DType type = type_of_b(broadcast, a.dtype);
  if (broadcast == Broadcast::image && a.shape.rank() == 4) {
    return {{{Shape{a.shape[0], a.shape[1], 1, 1}, type}}};
  }
  if (broadcast == Broadcast::channel && a.shape.rank() >= 2) {
    return {{{Shape{a.shape[1]}, type}}};
  }
  bad_input("multiply_backward: a {} has no factor of which one number serves several elements",
            a.shape.text());
}

Cost forward_work(const Attributes&, std::span<const TensorSpec> inputs,
                  std::span<const OutputSpec>) {
  return elementwise(inputs[0].shape.elements(), 1);
}

// A product and a sum.
Cost backward_work(const Attributes&, std::span<const TensorSpec> inputs,
                   std::span<const OutputSpec>) {
  return elementwise(inputs[0].shape.elements(), 2);
}

void gradient(GradientContext& context) {
  const ValueId a = context.input(0), b = context.input(1), diff_dst = context.diff_output(0);
  if (context.wanted(0)) {
    context.give(0, context.emit(OpKind::multiply, {}, {diff_dst, b}, Phase::backward_data)[0]);
  }
  if (!context.wanted(1)) return;
  const Broadcast broadcast = broadcast_of(context.spec(a).shape, context.spec(b).shape);
  if (broadcast == Broadcast::none) {
    context.give(1, context.emit(OpKind::multiply, {}, {diff_dst, a}, Phase::backward_data)[0]);
    return;
  }
  const Phase phase =
      broadcast == Broadcast::channel ? Phase::backward_weights : Phase::backward_data;
  context.give(1, context.emit(OpKind::multiply_backward, MultiplyAttributes{broadcast},
                               {diff_dst, a}, phase)[0]);
}

template <typename T>
void forward(const Tensor& a_tensor, const Tensor& b_tensor, const Tensor& dst_tensor) {
  const Elements<T> a(a_tensor), b(b_tensor), dst(dst_tensor);
  const Broadcast broadcast = broadcast_of(a_tensor.shape(), b_tensor.shape());
  if (broadcast == Broadcast::none) {
    for (std::int64_t i = 0; i < dst_tensor.shape().elements(); ++i) {
      dst.flat(i) = a.flat(i) * b.flat(i);
    }
    return;
  }
  for_each_index(dst_tensor.shape(), [&](auto n, auto c, auto h, auto w) {
    const T factor = broadcast == Broadcast::channel ? b(c) : b(n, c, 0, 0);
    dst(n, c, h, w) = a(n, c, h, w) * factor;
  });
}

template <typename T>
void backward(const Tensor& diff_dst_tensor, const Tensor& a_tensor, const Tensor& diff_b_tensor) {
  const Elements<T> diff_dst(diff_dst_tensor), a(a_tensor), diff_b(diff_b_tensor);
  const Shape& shape = a_tensor.shape();
  const bool per_sample = diff_b_tensor.shape().rank() == 4;
  std::vector<double> sums(static_cast<std::size_t>(diff_b_tensor.shape().elements()));
  for_each_index(shape, [&](auto n, auto c, auto h, auto w) {
    sums[static_cast<std::size_t>(per_sample ? n * shape[1] + c : c)] +=
        double{diff_dst(n, c, h, w)} * a(n, c, h, w);
  });
  for (std::size_t i = 0; i < sums.size(); ++i) {
    diff_b.flat(static_cast<std::int64_t>(i)) = static_cast<T>(sums[i]);
  }
}

void forward_reference(const OpCall& call) {
  with_float_type(call.outputs[0].spec.dtype, [&](auto type) {
    forward<decltype(type)>(call.inputs[0], call.inputs[1], call.outputs[0]);
  });
}

void backward_reference(const OpCall& call) {
  with_float_type(call.outputs[0].spec.dtype, [&](auto type) {
    backward<decltype(type)>(call.inputs[0], call.inputs[1], call.outputs[0]);
  });
}

std::string backward_text(const Attributes& attributes) {
  return std::get<MultiplyAttributes>(attributes).b == Broadcast::image ? "image" : "channel";
}

}  // namespace

const OpDef multiply_op = {.name = "multiply",
                           .outputs = forward_outputs,
                           .work = forward_work,
                           .gradient = gradient,
                           .reference = forward_reference,
                           .text = nullptr};

const OpDef multiply_backward_op = {.name = "multiply_backward",
                                    .outputs = backward_outputs,
                                    .work = backward_work,
                                    .gradient = nullptr,
                                    .reference = backward_reference,
                                    .text = backward_text};

}  // namespace ridgeline
