#include "ops/activation.h"

#include <cmath>
#include <numbers>

#include "base/error.h"
#include "ops/op.h"
#include "ops/reference.h"
#include "ops/work.h"

namespace ridgeline {

std::string_view name_of(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::relu:
      return "relu";
    case ActivationKind::relu6:
      return "relu6";
    case ActivationKind::leaky_relu:
      return "leaky_relu";
    case ActivationKind::sigmoid:
      return "sigmoid";
    case ActivationKind::tanh:
      return "tanh";
    case ActivationKind::silu:
      return "silu";
    case ActivationKind::hard_sigmoid:
      return "hard_sigmoid";
    case ActivationKind::hard_swish:
      return "hard_swish";
    case ActivationKind::gelu:
      return "gelu";
    case ActivationKind::gelu_tanh:
      return "gelu_tanh";
  }
  return "?";
}

namespace {

const ActivationAttributes& activation_of(const Attributes& attributes) {
  return std::get<ActivationAttributes>(attributes);
}

// The gradient is found from the sign of dst, which a negative slope would turn around.
void check_slope(const ActivationAttributes& a) {
  if (a.kind == ActivationKind::leaky_relu && !(a.slope >= 0.0)) {
    bad_input("activation: leaky_relu's slope must not be negative, and is {}", a.slope);
  }
}

std::vector<OutputSpec> forward_outputs(const Attributes& attributes,
                                        std::span<const TensorSpec> inputs) {
  check_slope(activation_of(attributes));
  return {{inputs[0]}};
}

std::vector<OutputSpec> backward_outputs(const Attributes& attributes,
                                         std::span<const TensorSpec> inputs) {
  check_slope(activation_of(attributes));
  if (inputs[0].shape != inputs[1].shape) {
    bad_input("activation_backward: diff_dst {} and {} {} must have the same shape",
              inputs[0].shape.text(),
              backward_uses_src(activation_of(attributes).kind) ? "src" : "dst",
              inputs[1].shape.text());
  }
  return {{inputs[0]}};
}

std::int64_t forward_flops(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::relu:
      return 1;
    case ActivationKind::relu6:
      return 2;
    case ActivationKind::leaky_relu:
      return 2;
    case ActivationKind::sigmoid:
      return 3;  // exp, add, divide
    case ActivationKind::tanh:
      return 1;
    case ActivationKind::silu:
      return 4;
    case ActivationKind::hard_sigmoid:
      return 4;  // add, two comparisons, divide
    case ActivationKind::hard_swish:
      return 5;
    case ActivationKind::gelu:
      return 4;  // two products with constants, erfc, times x
    case ActivationKind::gelu_tanh:
      return 8;  // 4 to the polynomial, the sigmoid's 3, times x
  }
  return 0;
}

std::int64_t backward_flops(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::relu:
      return 1;
    case ActivationKind::relu6:
      return 2;
    case ActivationKind::leaky_relu:
      return 2;
    case ActivationKind::sigmoid:
      return 3;  // 1 - y, times y, times diff_dst
    case ActivationKind::tanh:
      return 3;  // y * y, 1 - it, times diff_dst
    case ActivationKind::silu:
      return 8;  // the sigmoid's 3, then 5 as written below
    case ActivationKind::hard_sigmoid:
      return 3;  // two comparisons, divide
    case ActivationKind::hard_swish:
      return 5;  // two comparisons, divide, add, times diff_dst
    case ActivationKind::gelu:
      return 9;  // Φ's 3, the density's 3, then 3 as written below
    case ActivationKind::gelu_tanh:
      return 16;  // forward's 7, the polynomial's slope 3, then 6 as written below
  }
  return 0;
}

Cost forward_work(const Attributes& attributes, std::span<const TensorSpec> inputs,
                  std::span<const OutputSpec>) {
  return elementwise(inputs[0].shape.elements(), forward_flops(activation_of(attributes).kind));
}

Cost backward_work(const Attributes& attributes, std::span<const TensorSpec> inputs,
                   std::span<const OutputSpec>) {
  return elementwise(inputs[0].shape.elements(), backward_flops(activation_of(attributes).kind));
}

void gradient(GradientContext& context) {
  if (!context.wanted(0)) return;
  const bool uses_src = backward_uses_src(activation_of(context.attributes()).kind);
  const ValueId kept = uses_src ? context.input(0) : context.output(0);
  context.give(0, context.emit(OpKind::activation_backward, context.attributes(),
                               {context.diff_output(0), kept}, Phase::backward_data)[0]);
}

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

double relu6(double x) { return x < 0 ? 0 : (x > 6 ? 6 : x); }

// The normal distribution and its density. erfc keeps the digits of the far left tail.
double normal_below(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }
double normal_density(double x) {
  return std::exp(-0.5 * x * x) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
}

// gelu_tanh is x * (1 + tanh(u)) / 2 = x * sigmoid(2u), with u = √(2/π) (x + 0.044715 x³).
constexpr double kCubic = 0.044715;
double twice_u(double x) {
  return 2.0 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi * x * (1.0 + kCubic * x * x);
}
double slope_of_twice_u(double x) {
  return 2.0 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi * (1.0 + 3.0 * kCubic * x * x);
}

// Comparisons are written so that NaN passes through, as in PyTorch.
double activate(const ActivationAttributes& a, double x) {
  switch (a.kind) {
    case ActivationKind::relu:
      return x < 0 ? 0 : x;
    case ActivationKind::relu6:
      return relu6(x);
    case ActivationKind::leaky_relu:
      return x < 0 ? a.slope * x : x;
    case ActivationKind::sigmoid:
      return sigmoid(x);
    case ActivationKind::tanh:
      return std::tanh(x);
    case ActivationKind::silu:
      return x * sigmoid(x);
    case ActivationKind::hard_sigmoid:
      return relu6(x + 3) / 6;
    case ActivationKind::hard_swish:
      return x * relu6(x + 3) / 6;
    case ActivationKind::gelu:
      return x * normal_below(x);
    case ActivationKind::gelu_tanh:
      return x * sigmoid(twice_u(x));
  }
  return 0;
}

// diff_src at the point whose dst is `kept`; its src where backward_uses_src.
double differentiate(const ActivationAttributes& a, double diff, double kept) {
  switch (a.kind) {
    case ActivationKind::relu:
      return kept <= 0 ? 0 : diff;
    case ActivationKind::relu6:
      return kept <= 0 || kept >= 6 ? 0 : diff;
    case ActivationKind::leaky_relu:
      return kept > 0 ? diff : a.slope * diff;
    case ActivationKind::sigmoid:
      return diff * kept * (1 - kept);
    case ActivationKind::tanh:
      return diff * (1 - kept * kept);
    case ActivationKind::silu: {
      const double s = sigmoid(kept);
      return diff * s * (1 + kept * (1 - s));
    }
    case ActivationKind::hard_sigmoid:
      return kept <= 0 || kept >= 1 ? 0 : diff / 6;
    case ActivationKind::hard_swish:
      if (kept < -3) return 0;
      return kept > 3 ? diff : diff * (kept / 3 + 0.5);
    case ActivationKind::gelu:
      return diff * (normal_below(kept) + kept * normal_density(kept));
    case ActivationKind::gelu_tanh: {
      const double s = sigmoid(twice_u(kept));
      return diff * s * (1 + kept * (1 - s) * slope_of_twice_u(kept));
    }
  }
  return 0;
}

template <typename T>
void forward(const ActivationAttributes& a, const Tensor& src_tensor, const Tensor& dst_tensor) {
  const Elements<T> src(src_tensor), dst(dst_tensor);
  for (std::int64_t i = 0; i < dst_tensor.shape().elements(); ++i) {
    dst.flat(i) = static_cast<T>(activate(a, src.flat(i)));
  }
}

template <typename T>
void backward(const ActivationAttributes& a, const Tensor& diff_dst_tensor,
              const Tensor& kept_tensor, const Tensor& diff_src_tensor) {
  const Elements<T> diff_dst(diff_dst_tensor), kept(kept_tensor), diff_src(diff_src_tensor);
  for (std::int64_t i = 0; i < diff_src_tensor.shape().elements(); ++i) {
    diff_src.flat(i) = static_cast<T>(differentiate(a, diff_dst.flat(i), kept.flat(i)));
  }
}

void forward_reference(const OpCall& call) {
  with_float_type(call.outputs[0].spec.dtype, [&](auto type) {
    forward<decltype(type)>(activation_of(call.attributes), call.inputs[0], call.outputs[0]);
  });
}

void backward_reference(const OpCall& call) {
  with_float_type(call.outputs[0].spec.dtype, [&](auto type) {
    backward<decltype(type)>(activation_of(call.attributes), call.inputs[0], call.inputs[1],
                             call.outputs[0]);
  });
}

std::string text(const Attributes& attributes) {
  const ActivationAttributes& a = activation_of(attributes);
  if (a.kind == ActivationKind::leaky_relu) return fmt::format("leaky_relu {}", a.slope);
  return std::string(name_of(a.kind));
}

}  // namespace

const OpDef activation_op = {.name = "activation",
                             .outputs = forward_outputs,
                             .work = forward_work,
                             .gradient = gradient,
                             .reference = forward_reference,
                             .text = text};

const OpDef activation_backward_op = {.name = "activation_backward",
                                      .outputs = backward_outputs,
                                      .work = backward_work,
                                      .gradient = nullptr,
                                      .reference = backward_reference,
                                      .text = text};

}  // namespace ridgeline
