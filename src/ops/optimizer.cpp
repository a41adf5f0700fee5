#include "ops/optimizer.h"

#include <cmath>

#include "base/error.h"
#include "ops/op.h"
#include "ops/reference.h"
#include "ops/work.h"

namespace ridgeline {
namespace {

const SgdAttributes& sgd_of(const Attributes& attributes) {
  return std::get<SgdAttributes>(attributes);
}

const AdamAttributes& adam_of(const Attributes& attributes) {
  return std::get<AdamAttributes>(attributes);
}

// Each of the parameter's companions must have its shape; all but the gradient are updated.
void check_inputs(std::string_view op, std::span<const TensorSpec> inputs, std::size_t expected) {
  if (inputs.size() != expected) {
    bad_input("{}: {} inputs where {} are needed", op, inputs.size(), expected);
  }
  for (const TensorSpec& input : inputs) {
    if (input.shape != inputs[0].shape) {
      bad_input("{}: parameter {} and its gradient or state {} must have the same shape", op,
                inputs[0].shape.text(), input.shape.text());
    }
  }
}

std::vector<OutputSpec> sgd_outputs(const Attributes& attributes,
                                    std::span<const TensorSpec> inputs) {
  const SgdAttributes& a = sgd_of(attributes);
  if (!(a.momentum >= 0.0) || !(a.weight_decay >= 0.0)) {
    bad_input("sgd: momentum {} and weight decay {} must not be negative", a.momentum,
              a.weight_decay);
  }
  if (a.nesterov && a.momentum == 0.0) bad_input("sgd: nesterov needs a momentum above 0");
  check_inputs("sgd", inputs, a.momentum > 0.0 ? 3 : 2);
  if (a.momentum == 0.0) return {{inputs[0], 0}};
  return {{inputs[0], 0}, {inputs[2], 2}};
}

std::vector<OutputSpec> adam_outputs(const Attributes& attributes,
                                     std::span<const TensorSpec> inputs) {
  const AdamAttributes& a = adam_of(attributes);
  if (!(a.beta1 >= 0.0 && a.beta1 < 1.0 && a.beta2 >= 0.0 && a.beta2 < 1.0)) {
    bad_input("adam: betas {} and {} must be in [0, 1)", a.beta1, a.beta2);
  }
  if (!(a.epsilon >= 0.0) || !(a.weight_decay >= 0.0)) {
    bad_input("adam: epsilon {} and weight decay {} must not be negative", a.epsilon,
              a.weight_decay);
  }
  check_inputs("adam", inputs, 4);
  return {{inputs[0], 0}, {inputs[2], 2}, {inputs[3], 3}};
}

// The division by the loss scale, and parameter -= rate * gradient; two more for each extra.
Cost sgd_work(const Attributes& attributes, std::span<const TensorSpec> inputs,
              std::span<const OutputSpec>) {
  const SgdAttributes& a = sgd_of(attributes);
  const int extras =
      (a.weight_decay > 0.0 ? 1 : 0) + (a.momentum > 0.0 ? 1 : 0) + (a.nesterov ? 1 : 0);
  return elementwise(inputs[0].shape.elements(), 3 + 2 * extras);
}

// Loss scale 1, m 3, v 4, denominator 3, update 3.
Cost adam_work(const Attributes& attributes, std::span<const TensorSpec> inputs,
               std::span<const OutputSpec>) {
  const AdamAttributes& a = adam_of(attributes);
  const int decay = a.weight_decay == 0.0 ? 0 : (a.decoupled ? 1 : 2);
  return elementwise(inputs[0].shape.elements(), 14 + decay);
}

template <typename T>
void copy(const Tensor& src_tensor, const Tensor& dst_tensor) {
  const Elements<T> src(src_tensor), dst(dst_tensor);
  for (std::int64_t i = 0; i < dst_tensor.shape().elements(); ++i) dst.flat(i) = src.flat(i);
}

template <typename T>
void sgd(const OpCall& call) {
  const SgdAttributes& a = sgd_of(call.attributes);
  const bool has_velocity = a.momentum > 0.0;
  if (call.state.overflow != 0) {
    copy<T>(call.inputs[0], call.outputs[0]);
    if (has_velocity) copy<T>(call.inputs[2], call.outputs[1]);
    return;
  }
  const Elements<T> parameter(call.inputs[0]), gradient(call.inputs[1]), updated(call.outputs[0]);
  // Without momentum there is no velocity, and these stand for nothing.
  const Elements<T> old_velocity(call.inputs[has_velocity ? 2 : 0]);
  const Elements<T> new_velocity(call.outputs[has_velocity ? 1 : 0]);
  for (std::int64_t i = 0; i < call.outputs[0].shape().elements(); ++i) {
    double step = gradient.flat(i) / call.state.gradient_scale + a.weight_decay * parameter.flat(i);
    if (has_velocity) {
      const double velocity = a.momentum * old_velocity.flat(i) + step;
      new_velocity.flat(i) = static_cast<T>(velocity);
      step = a.nesterov ? step + a.momentum * velocity : velocity;
    }
    updated.flat(i) = static_cast<T>(parameter.flat(i) - call.state.learning_rate * step);
  }
}

template <typename T>
void adam(const OpCall& call) {
  if (call.state.overflow != 0) {
    copy<T>(call.inputs[0], call.outputs[0]);
    copy<T>(call.inputs[2], call.outputs[1]);
    copy<T>(call.inputs[3], call.outputs[2]);
    return;
  }
  const AdamAttributes& a = adam_of(call.attributes);
  const Elements<T> parameter(call.inputs[0]), gradient(call.inputs[1]);
  const Elements<T> m(call.inputs[2]), v(call.inputs[3]);
  const Elements<T> new_parameter(call.outputs[0]), new_m(call.outputs[1]), new_v(call.outputs[2]);
  const double rate = call.state.learning_rate;
  const auto t = static_cast<double>(call.state.updates());
  const double correction1 = 1 - std::pow(a.beta1, t), correction2 = 1 - std::pow(a.beta2, t);
  for (std::int64_t i = 0; i < call.outputs[0].shape().elements(); ++i) {
    double weight = parameter.flat(i);
    double diff = gradient.flat(i) / call.state.gradient_scale;
    if (a.decoupled) {
      weight *= 1 - rate * a.weight_decay;
    } else {
      diff += a.weight_decay * weight;
    }
    const double first = a.beta1 * m.flat(i) + (1 - a.beta1) * diff;
    const double second = a.beta2 * v.flat(i) + (1 - a.beta2) * diff * diff;
    const double denominator = std::sqrt(second) / std::sqrt(correction2) + a.epsilon;
    new_m.flat(i) = static_cast<T>(first);
    new_v.flat(i) = static_cast<T>(second);
    new_parameter.flat(i) = static_cast<T>(weight - rate / correction1 * first / denominator);
  }
}

void sgd_reference(const OpCall& call) {
  with_float_type(call.outputs[0].spec.dtype, [&](auto type) { sgd<decltype(type)>(call); });
}

void adam_reference(const OpCall& call) {
  with_float_type(call.outputs[0].spec.dtype, [&](auto type) { adam<decltype(type)>(call); });
}

std::string sgd_text(const Attributes& attributes) {
  const SgdAttributes& a = sgd_of(attributes);
  return fmt::format("momentum{} decay{}{}", a.momentum, a.weight_decay,
                     a.nesterov ? " nesterov" : "");
}

std::string adam_text(const Attributes& attributes) {
  const AdamAttributes& a = adam_of(attributes);
  return fmt::format("beta{},{} eps{} decay{}{}", a.beta1, a.beta2, a.epsilon, a.weight_decay,
                     a.decoupled ? " decoupled" : "");
}

}  // namespace

const OpDef sgd_op = {.name = "sgd",
                      .outputs = sgd_outputs,
                      .work = sgd_work,
                      .gradient = nullptr,
                      .reference = sgd_reference,
                      .text = sgd_text};

const OpDef adam_op = {.name = "adam",
                       .outputs = adam_outputs,
                       .work = adam_work,
                       .gradient = nullptr,
                       .reference = adam_reference,
                       .text = adam_text};

}  // namespace ridgeline
