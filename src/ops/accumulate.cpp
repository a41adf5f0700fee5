#include "ops/accumulate.h"

#include "base/error.h"
#include "base/half.h"
#include "ops/op.h"
#include "ops/reference.h"
#include "ops/work.h"

namespace ridgeline {
namespace {

bool begins(const Attributes& attributes) {
  return std::get<AccumulateAttributes>(attributes).first;
}

std::vector<OutputSpec> outputs(const Attributes&, std::span<const TensorSpec> inputs) {
  const std::size_t sums = inputs.size() / 2;
  if (inputs.empty() || inputs.size() % 2 != 0) {
    bad_input("accumulate: {} inputs; there must be a value for each sum", inputs.size());
  }
  std::vector<OutputSpec> made;
  for (std::size_t i = 0; i < sums; ++i) {
    const TensorSpec &sum = inputs[i], &value = inputs[sums + i];
    if (sum.shape != value.shape || !is_float(value.dtype) ||
        (sum.dtype != DType::f32 && sum.dtype != DType::f64)) {
      bad_input("accumulate: value {} {} does not fit sum {} {}", value.shape.text(),
                name_of(value.dtype), sum.shape.text(), name_of(sum.dtype));
    }
    made.push_back({sum, static_cast<int>(i)});
  }
  return made;
}

Cost work(const Attributes& attributes, std::span<const TensorSpec> inputs,
          std::span<const OutputSpec> made) {
  std::int64_t elements = 0;
  for (std::size_t i = 0; i < made.size(); ++i) elements += inputs[i].shape.elements();
  return elementwise(elements, begins(attributes) ? 0 : 1);
}

void reference(const OpCall& call) {
  const std::size_t sums = call.outputs.size();
  for (std::size_t i = 0; i < sums; ++i) {
    with_float_type(call.inputs[i].spec.dtype, [&](auto type) {
      using T = decltype(type);
      with_any_float_type(call.inputs[sums + i].spec.dtype, [&](auto narrow) {
        const Elements<T> sum(call.inputs[i]), dst(call.outputs[i]);
        const Elements<decltype(narrow)> value(call.inputs[sums + i]);
        for (std::int64_t e = 0; e < call.inputs[i].shape().elements(); ++e) {
          const double before = begins(call.attributes) ? 0.0 : double{sum.flat(e)};
          dst.flat(e) = static_cast<T>(before + widened(value.flat(e)));
        }
      });
    });
  }
}

std::string text(const Attributes& attributes) { return begins(attributes) ? "first" : ""; }

}  // namespace

const OpDef accumulate_op = {.name = "accumulate",
                             .outputs = outputs,
                             .work = work,
                             .gradient = nullptr,
                             .reference = reference,
                             .text = text};

}  // namespace ridgeline
