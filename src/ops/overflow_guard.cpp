#include "ops/overflow_guard.h"

#include <cmath>

#include "base/error.h"
#include "base/half.h"
#include "ops/op.h"
#include "ops/reference.h"
#include "ops/work.h"

namespace ridgeline {

void note_overflow(const OverflowGuardAttributes& attributes, bool overflow, StepState& state) {
  state.gradient_scale = state.loss_scale;
  state.overflow = overflow ? 1 : 0;
  if (overflow) {
    ++state.overflows;
    state.loss_scale *= attributes.backoff;
    state.steps_in_range = 0;
  } else if (++state.steps_in_range >= attributes.interval) {
    state.loss_scale *= attributes.growth;
    state.steps_in_range = 0;
  }
}

namespace {

const OverflowGuardAttributes& guard_of(const Attributes& attributes) {
  return std::get<OverflowGuardAttributes>(attributes);
}

std::vector<OutputSpec> outputs(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  const OverflowGuardAttributes& a = guard_of(attributes);
  if (!(a.growth >= 1.0) || !(a.backoff > 0.0 && a.backoff <= 1.0) || a.interval < 1) {
    bad_input(
        "overflow_guard: growth {} must be at least 1, backoff {} in (0, 1], interval {} at "
        "least 1",
        a.growth, a.backoff, a.interval);
  }
  std::vector<OutputSpec> made;
  for (const TensorSpec& input : inputs) {
    if (!is_float(input.dtype)) {
      bad_input("overflow_guard: {} {} are no floats", input.shape.text(), name_of(input.dtype));
    }
    made.push_back({input, static_cast<int>(made.size())});
  }
  return made;
}

// One comparison an element.
Cost work(const Attributes&, std::span<const TensorSpec> inputs, std::span<const OutputSpec>) {
  std::int64_t elements = 0;
  for (const TensorSpec& input : inputs) elements += input.shape.elements();
  return elementwise(elements, 1);
}

void reference(const OpCall& call) {
  bool overflow = false;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    with_any_float_type(call.inputs[i].spec.dtype, [&](auto type) {
      const Elements<decltype(type)> src(call.inputs[i]), dst(call.outputs[i]);
      for (std::int64_t e = 0; e < call.inputs[i].shape().elements(); ++e) {
        overflow = overflow || !std::isfinite(widened(src.flat(e)));
        if (call.outputs[i].data != nullptr) dst.flat(e) = src.flat(e);
      }
    });
  }
  note_overflow(guard_of(call.attributes), overflow, call.state);
}

std::string text(const Attributes& attributes) {
  const OverflowGuardAttributes& a = guard_of(attributes);
  return fmt::format("growth{} backoff{} interval{}", a.growth, a.backoff, a.interval);
}

}  // namespace

const OpDef overflow_guard_op = {.name = "overflow_guard",
                                 .outputs = outputs,
                                 .work = work,
                                 .gradient = nullptr,
                                 .reference = reference,
                                 .text = text};

}  // namespace ridgeline
