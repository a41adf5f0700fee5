#include "ops/shuffle.h"

#include "base/error.h"
#include "ops/op.h"
#include "ops/reference.h"
#include "ops/work.h"

namespace ridgeline {
namespace {

std::int64_t groups_of(const Attributes& attributes) {
  return std::get<ShuffleAttributes>(attributes).groups;
}

std::vector<OutputSpec> outputs(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  const std::int64_t groups = groups_of(attributes);
  const Shape& src = inputs[0].shape;
  if (src.rank() < 2 || groups < 1 || src[1] % groups != 0) {
    bad_input("shuffle: the channels of {} cannot be cut into {} groups", src.text(), groups);
  }
  return {{inputs[0]}};
}

void gradient(GradientContext& context) {
  if (!context.wanted(0)) return;
  const std::int64_t channels = context.spec(context.input(0)).shape[1];
  const ShuffleAttributes back{channels / groups_of(context.attributes())};
  context.give(
      0, context.emit(OpKind::shuffle, back, {context.diff_output(0)}, Phase::backward_data)[0]);
}

template <typename T>
void shuffle(std::int64_t groups, const Tensor& src_tensor, const Tensor& dst_tensor) {
  const Elements<T> src(src_tensor), dst(dst_tensor);
  const std::int64_t of_group = src_tensor.shape()[1] / groups;
  for_each_index(dst_tensor.shape(), [&](auto n, auto c, auto h, auto w) {
    dst(n, c, h, w) = src(n, c % groups * of_group + c / groups, h, w);
  });
}

void reference(const OpCall& call) {
  with_float_type(call.outputs[0].spec.dtype, [&](auto type) {
    shuffle<decltype(type)>(groups_of(call.attributes), call.inputs[0], call.outputs[0]);
  });
}

std::string text(const Attributes& attributes) { return fmt::format("g{}", groups_of(attributes)); }

}  // namespace

const OpDef shuffle_op = {.name = "shuffle",
                          .outputs = outputs,
                          .work = no_work,
                          .gradient = gradient,
                          .reference = reference,
                          .text = text};

}  // namespace ridgeline
