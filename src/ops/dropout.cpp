#include "ops/dropout.h"

#include "base/error.h"
#include "base/philox.h"
#include "ops/op.h"
#include "ops/reference.h"
#include "ops/work.h"

namespace ridgeline {

// One Philox block serves four neighbours.
float dropout_factor(const DropoutAttributes& attributes, std::uint64_t seed, std::int64_t step,
                     std::int64_t index) {
  const std::uint64_t key = stream_key(seed, RandomStream::dropout);
  const auto position = static_cast<std::uint64_t>(index);
  const PhiloxBlock block =
      philox(key, position / 4, (static_cast<std::uint64_t>(step) << 32) | attributes.layer);
  const auto probability = static_cast<float>(attributes.probability);
  if (to_uniform(block[position % 4]) < probability) return 0.0F;
  return 1.0F / (1.0F - probability);
}

namespace {

std::vector<OutputSpec> outputs(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  const double probability = std::get<DropoutAttributes>(attributes).probability;
  if (!(probability >= 0.0 && probability <= 1.0)) {
    bad_input("dropout: the probability must be between 0 and 1, and is {}", probability);
  }
  if (std::get<DropoutAttributes>(attributes).per_sample && inputs[0].shape.rank() < 2) {
    bad_input("dropout: src {} has no samples to drop", inputs[0].shape.text());
  }
  return {{inputs[0]}};
}

Cost work(const Attributes&, std::span<const TensorSpec> inputs, std::span<const OutputSpec>) {
  return elementwise(inputs[0].shape.elements(), 1);
}

void gradient(GradientContext& context) {
  if (!context.wanted(0)) return;
  context.give(0, context.emit(OpKind::dropout, context.attributes(), {context.diff_output(0)},
                               Phase::backward_data)[0]);
}

template <typename T>
void apply(const DropoutAttributes& a, const StepState& state, const Tensor& src_tensor,
           const Tensor& dst_tensor) {
  const Elements<T> src(src_tensor), dst(dst_tensor);
  const Shape& shape = dst_tensor.shape();
  const std::int64_t of_row = shape.elements() / shape[0];
  const std::int64_t of_draw = a.per_sample ? of_row : 1;
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    const std::int64_t index = (state.first_row * of_row + i) / of_draw;
    dst.flat(i) = src.flat(i) * dropout_factor(a, state.seed, state.random_step, index);
  }
}

void reference(const OpCall& call) {
  with_float_type(call.outputs[0].spec.dtype, [&](auto type) {
    apply<decltype(type)>(std::get<DropoutAttributes>(call.attributes), call.state, call.inputs[0],
                          call.outputs[0]);
  });
}

std::string text(const Attributes& attributes) {
  const auto& a = std::get<DropoutAttributes>(attributes);
  return fmt::format("p{} layer{}{}", a.probability, a.layer, a.per_sample ? " per sample" : "");
}

}  // namespace

const OpDef dropout_op = {.name = "dropout",
                          .outputs = outputs,
                          .work = work,
                          .gradient = gradient,
                          .reference = reference,
                          .text = text};

}  // namespace ridgeline
