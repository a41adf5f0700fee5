#include "ops/add.h"

#include "base/error.h"
#include "ops/op.h"
#include "ops/reference.h"
#include "ops/work.h"

namespace ridgeline {
namespace {

std::vector<OutputSpec> outputs(const Attributes&, std::span<const TensorSpec> inputs) {
  if (inputs[0] != inputs[1]) {
    bad_input("add: {} {} and {} {} must have the same shape and type", inputs[0].shape.text(),
              name_of(inputs[0].dtype), inputs[1].shape.text(), name_of(inputs[1].dtype));
  }
  return {{inputs[0]}};
}

Cost work(const Attributes&, std::span<const TensorSpec> inputs, std::span<const OutputSpec>) {
  return elementwise(inputs[0].shape.elements(), 1);
}

void gradient(GradientContext& context) {
  for (const std::size_t input : {0U, 1U}) {
    if (context.wanted(input)) context.give(input, context.diff_output(0));
  }
}

template <typename T>
void forward(const Tensor& a_tensor, const Tensor& b_tensor, const Tensor& dst_tensor) {
  const Elements<T> a(a_tensor), b(b_tensor), dst(dst_tensor);
  for (std::int64_t i = 0; i < dst_tensor.shape().elements(); ++i) {
    dst.flat(i) = a.flat(i) + b.flat(i);
  }
}

void reference(const OpCall& call) {
  with_float_type(call.outputs[0].spec.dtype, [&](auto type) {
    forward<decltype(type)>(call.inputs[0], call.inputs[1], call.outputs[0]);
  });
}

}  // namespace

const OpDef add_op = {.name = "add",
                      .outputs = outputs,
                      .work = work,
                      .gradient = gradient,
                      .reference = reference,
                      .text = nullptr};

}  // namespace ridgeline
