#include "onnx/pointwise.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/error.h"

namespace ridgeline::onnx {
namespace {

// Constants come in single or half precision; the two kinds of GELU are further apart.
constexpr double kTolerance = 1e-4;

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double hard_sigmoid(double x) { return std::clamp(x / 6.0 + 0.5, 0.0, 1.0); }
double gelu(double x) { return 0.5 * x * (1.0 + std::erf(x / std::numbers::sqrt2)); }
double gelu_tanh(double x) {
  const double inner = std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1.0 + std::tanh(inner));
}

struct Unary {
  std::string_view type;
  double (*compute)(double);
};
constexpr std::array<Unary, 11> kUnaryOps = {{
    {"Relu", [](double x) { return std::max(x, 0.0); }},
    {"Sigmoid", sigmoid},
    {"Tanh", [](double x) { return std::tanh(x); }},
    {"Erf", [](double x) { return std::erf(x); }},
    {"Exp", [](double x) { return std::exp(x); }},
    {"Log", [](double x) { return std::log(x); }},
    {"Neg", [](double x) { return -x; }},
    {"Abs", [](double x) { return std::abs(x); }},
    {"Sqrt", [](double x) { return std::sqrt(x); }},
    {"Reciprocal", [](double x) { return 1.0 / x; }},
    {"HardSwish", [](double x) { return x * hard_sigmoid(x); }},
}};

struct Binary {
  std::string_view type;
  double (*compute)(double, double);
};
constexpr std::array<Binary, 7> kBinaryOps = {{
    {"Add", [](double a, double b) { return a + b; }},
    {"Sub", [](double a, double b) { return a - b; }},
    {"Mul", [](double a, double b) { return a * b; }},
    {"Div", [](double a, double b) { return a / b; }},
    {"Pow", [](double a, double b) { return std::pow(a, b); }},
    {"Min", [](double a, double b) { return std::min(a, b); }},
    {"Max", [](double a, double b) { return std::max(a, b); }},
}};

// Ops whose attributes or further inputs say what they do.
constexpr std::array<std::string_view, 5> kShaped = {"Clip", "LeakyRelu", "HardSigmoid", "Gelu",
                                                     "Elu"};

template <typename Table>
auto find_in(const Table& table, std::string_view type) {
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const auto& each) { return each.type == type; });
  return found == table.end() ? nullptr : &*found;
}

// A bound of Clip: an input, or an attribute before opset 11.
double bound(const OpNode& node, std::span<const Array* const> constants, std::size_t index,
             const char* attribute, double otherwise) {
  const Array* array = index < constants.size() ? constants[index] : nullptr;
  if (array == nullptr) return node.real(attribute, otherwise);
  const std::optional<double> number = array->number();
  if (!number) bad_input("a bound that is no single number");
  return *number;
}

}  // namespace

Pointwise Pointwise::constant(double value) {
  Values values{};
  values.fill(value);
  return Pointwise(values);
}

template <typename Function>
Pointwise Pointwise::mapped(Function function) const {
  Values values{};
  std::transform(values_.begin(), values_.end(), values.begin(), function);
  return Pointwise(values);
}

std::optional<Pointwise> Pointwise::then(const OpNode& node,
                                         std::span<const Array* const> constants) const {
  if (const Unary* unary = find_in(kUnaryOps, node.type)) return mapped(unary->compute);
  if (node.type == "Clip") {
    constexpr double all = std::numeric_limits<double>::infinity();
    const double least = bound(node, constants, 0, "min", -all);
    const double most = bound(node, constants, 1, "max", all);
    return mapped([&](double x) { return std::min(std::max(x, least), most); });
  }
  if (node.type == "LeakyRelu") {
    const double slope = node.real("alpha", 0.01);
    return mapped([&](double x) { return x < 0.0 ? slope * x : x; });
  }
  if (node.type == "Elu") {
    const double factor = node.real("alpha", 1.0);
    return mapped([&](double x) { return x < 0.0 ? factor * std::expm1(x) : x; });
  }
  if (node.type == "HardSigmoid") {
    const double factor = node.real("alpha", 0.2), shift = node.real("beta", 0.5);
    return mapped([&](double x) { return std::clamp(factor * x + shift, 0.0, 1.0); });
  }
  if (node.type == "Gelu") {
    return mapped(node.text("approximate", "none") == "tanh" ? gelu_tanh : gelu);
  }
  return std::nullopt;
}

std::optional<Pointwise> Pointwise::joined(std::string_view op, const Pointwise& a,
                                           const Pointwise& b) {
  const Binary* binary = find_in(kBinaryOps, op);
  if (binary == nullptr) return std::nullopt;
  Values values{};
  std::transform(a.values_.begin(), a.values_.end(), b.values_.begin(), values.begin(),
                 binary->compute);
  return Pointwise(values);
}

template <typename Function>
bool Pointwise::is(Function function) const {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const double x = kProbes[i], allowed = kTolerance * std::max(1.0, std::abs(x));
    if (!(std::abs(values_[i] - function(x)) <= allowed)) return false;
  }
  return true;
}

bool Pointwise::is_identity() const {
  return is([](double x) { return x; });
}

std::optional<ActivationAttributes> Pointwise::activation() const {
  using Kind = ActivationKind;
  struct KnownCurve {
    Kind kind;
    double (*compute)(double);
  };
  static constexpr std::array<KnownCurve, 9> kKnown = {{
      {Kind::relu, [](double x) { return std::max(x, 0.0); }},
      {Kind::relu6, [](double x) { return std::clamp(x, 0.0, 6.0); }},
      {Kind::sigmoid, sigmoid},
      {Kind::tanh, [](double x) { return std::tanh(x); }},
      {Kind::silu, [](double x) { return x * sigmoid(x); }},
      {Kind::hard_sigmoid, hard_sigmoid},
      {Kind::hard_swish, [](double x) { return x * hard_sigmoid(x); }},
      {Kind::gelu, gelu},
      {Kind::gelu_tanh, gelu_tanh},
  }};
  for (const KnownCurve& known : kKnown) {
    if (is(known.compute)) return ActivationAttributes{.kind = known.kind};
  }
  const auto minus_one =
      static_cast<std::size_t>(std::find(kProbes.begin(), kProbes.end(), -1.0) - kProbes.begin());
  const double slope = -values_[minus_one];
  if (slope > 0.0 && slope < 1.0 && is([&](double x) { return x < 0.0 ? slope * x : x; })) {
    return ActivationAttributes{.kind = Kind::leaky_relu, .slope = slope};
  }
  return std::nullopt;
}

std::optional<Pointwise::Line> Pointwise::line() const {
  const auto at = [&](double x) {
    return values_[static_cast<std::size_t>(std::find(kProbes.begin(), kProbes.end(), x) -
                                            kProbes.begin())];
  };
  const Line line{at(1.0) - at(0.0), at(0.0)};
  const bool straight = is([&](double x) { return line.factor * x + line.shift; });
  return straight ? std::optional(line) : std::nullopt;
}

bool is_pointwise(const OpNode& node) {
  return find_in(kUnaryOps, node.type) != nullptr || find_in(kBinaryOps, node.type) != nullptr ||
         std::find(kShaped.begin(), kShaped.end(), node.type) != kShaped.end();
}

}  // namespace ridgeline::onnx
