#include "ops/cast.h"

#include "base/error.h"
#include "base/half.h"
#include "ops/op.h"
#include "ops/reference.h"
#include "ops/work.h"

namespace ridgeline {
namespace {

const CastAttributes& cast_of(const Attributes& attributes) {
  return std::get<CastAttributes>(attributes);
}

std::vector<OutputSpec> outputs(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  const DType to = cast_of(attributes).to;
  if (!is_float(inputs[0].dtype) || !is_float(to)) {
    bad_input("cast: from {} to {}; both must be float types", name_of(inputs[0].dtype),
              name_of(to));
  }
  return {{{inputs[0].shape, to}}};
}

// What flows back is cast back.
void gradient(GradientContext& context) {
  if (!context.wanted(0)) return;
  const CastAttributes back{context.spec(context.input(0)).dtype};
  context.give(0,
               context.emit(OpKind::cast, back, {context.diff_output(0)}, Phase::backward_data)[0]);
}

template <typename From>
void convert(const Tensor& src_tensor, const Tensor& dst_tensor) {
  with_any_float_type(dst_tensor.spec.dtype, [&](auto to) {
    using To = decltype(to);
    const Elements<From> src(src_tensor);
    const Elements<To> dst(dst_tensor);
    for (std::int64_t i = 0; i < dst_tensor.shape().elements(); ++i) {
      dst.flat(i) = narrowed<To>(widened(src.flat(i)));
    }
  });
}

void reference(const OpCall& call) {
  with_any_float_type(call.inputs[0].spec.dtype,
                      [&](auto from) { convert<decltype(from)>(call.inputs[0], call.outputs[0]); });
}

std::string text(const Attributes& attributes) {
  return std::string(name_of(cast_of(attributes).to));
}

}  // namespace

const OpDef cast_op = {.name = "cast",
                       .outputs = outputs,
                       .work = no_work,
                       .gradient = gradient,
                       .reference = reference,
                       .text = text};

}  // namespace ridgeline
