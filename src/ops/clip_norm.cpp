#include "ops/clip_norm.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/half.h"
#include "ops/op.h"
#include "ops/reference.h"
#include "ops/work.h"

namespace ridgeline {

double clip_factor(const ClipNormAttributes& attributes, double norm) {
  constexpr double kPyTorchEpsilon = 1e-6;
  if (!std::isfinite(norm)) return 1.0;
  return std::min(1.0, attributes.largest / (norm + kPyTorchEpsilon));
}

namespace {

const ClipNormAttributes& clip_of(const Attributes& attributes) {
  return std::get<ClipNormAttributes>(attributes);
}

std::vector<OutputSpec> outputs(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  if (!(clip_of(attributes).largest > 0.0) || !std::isfinite(clip_of(attributes).largest)) {
    bad_input("clip_norm: the largest norm {} must be above 0", clip_of(attributes).largest);
  }
  std::vector<OutputSpec> made;
  for (const TensorSpec& input : inputs) {
    if (!is_float(input.dtype)) {
      bad_input("clip_norm: {} {} are no floats", input.shape.text(), name_of(input.dtype));
    }
    made.push_back({input, static_cast<int>(made.size())});
  }
  return made;
}

// Square, sum and product.
Cost work(const Attributes&, std::span<const TensorSpec> inputs, std::span<const OutputSpec>) {
  std::int64_t elements = 0;
  for (const TensorSpec& input : inputs) elements += input.shape.elements();
  return elementwise(elements, 3);
}

void reference(const OpCall& call) {
  double squares = 0.0;
  for (const Tensor& input : call.inputs) {
    with_any_float_type(input.spec.dtype, [&](auto type) {
      const Elements<decltype(type)> src(input);
      for (std::int64_t e = 0; e < input.shape().elements(); ++e) {
        const double value = widened(src.flat(e));
        squares += value * value;
      }
    });
  }
  const double factor =
      clip_factor(clip_of(call.attributes), std::sqrt(squares) / call.state.gradient_scale);
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    with_any_float_type(call.inputs[i].spec.dtype, [&](auto type) {
      using T = decltype(type);
      const Elements<T> src(call.inputs[i]), dst(call.outputs[i]);
      for (std::int64_t e = 0; e < call.inputs[i].shape().elements(); ++e) {
        dst.flat(e) = narrowed<T>(widened(src.flat(e)) * factor);
      }
    });
  }
}

std::string text(const Attributes& attributes) {
  return fmt::format("{}", clip_of(attributes).largest);
}

}  // namespace

const OpDef clip_norm_op = {.name = "clip_norm",
                            .outputs = outputs,
                            .work = work,
                            .gradient = nullptr,
                            .reference = reference,
                            .text = text};

}  // namespace ridgeline
