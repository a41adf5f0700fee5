#include "ops/reshape.h"

#include "base/error.h"
#include "ops/op.h"
#include "ops/reference.h"
#include "ops/work.h"

namespace ridgeline {
namespace {

std::vector<OutputSpec> outputs(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  const Shape& shape = std::get<ReshapeAttributes>(attributes).shape;
  const Shape& src = inputs[0].shape;
  if (shape.elements() != src.elements()) {
    bad_input("reshape: {} has {} elements, but {} has {}", src.text(), src.elements(),
              shape.text(), shape.elements());
  }
  return {{{shape, inputs[0].dtype}}};
}

void gradient(GradientContext& context) {
  if (!context.wanted(0)) return;
  const Shape& src = context.spec(context.input(0)).shape;
  context.give(0, context.emit(OpKind::reshape, ReshapeAttributes{src}, {context.diff_output(0)},
                               Phase::backward_data)[0]);
}

template <typename T>
void copy(const Tensor& src_tensor, const Tensor& dst_tensor) {
  const Elements<T> src(src_tensor), dst(dst_tensor);
  for (std::int64_t i = 0; i < dst_tensor.shape().elements(); ++i) dst.flat(i) = src.flat(i);
}

void reference(const OpCall& call) {
  with_float_type(call.outputs[0].spec.dtype,
                  [&](auto type) { copy<decltype(type)>(call.inputs[0], call.outputs[0]); });
}

std::string text(const Attributes& attributes) {
  return std::get<ReshapeAttributes>(attributes).shape.text();
}

}  // namespace

const OpDef reshape_op = {.name = "reshape",
                          .outputs = outputs,
                          .work = no_work,
                          .gradient = gradient,
                          .reference = reference,
                          .text = text};

}  // namespace ridgeline
