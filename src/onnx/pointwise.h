#pragma once

// Functions of one number, as chains of element by element ops with constants make them. A function
// is known by its values at some points, so GELU is recognised whatever the ops and the order in
// which an exporter writes it down.

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "onnx/file.h"
#include "ops/activation.h"

namespace ridgeline::onnx {

inline constexpr std::array<double, 42> kProbes = {
    -1e4, -100, -20,  -10,  -6,    -5, -4,   -3.5, -3,  -2.9, -2.5, -2, -1.5, -1,
    -0.7, -0.5, -0.2, -0.1, -1e-2, 0,  1e-2, 0.1,  0.2, 0.5,  0.7,  1,  1.5,  2,
    2.5,  2.9,  3,    3.1,  3.5,   4,  5,    5.9,  6,   6.1,  10,   20, 100,  1e4};

class Pointwise {
 public:
  // The number itself.
  Pointwise() : values_(kProbes) {}
  [[nodiscard]] static Pointwise constant(double value);

  // Ops of ONNX by name; nothing for one that is none. `node` has the attributes, `constants` are
  // the inputs behind the first.
  [[nodiscard]] std::optional<Pointwise> then(const OpNode& node,
                                              std::span<const Array* const> constants) const;
  [[nodiscard]] static std::optional<Pointwise> joined(std::string_view op, const Pointwise& a,
                                                       const Pointwise& b);

  [[nodiscard]] bool is_identity() const;
  // The activation that it is; nothing where we have none like it.
  [[nodiscard]] std::optional<ActivationAttributes> activation() const;
  struct Line {
    double factor, shift;
  };
  // Where it is factor * x + shift.
  [[nodiscard]] std::optional<Line> line() const;

 private:
  using Values = std::array<double, kProbes.size()>;
  explicit Pointwise(const Values& values) : values_(values) {}
  template <typename Function>
  [[nodiscard]] Pointwise mapped(Function function) const;
  template <typename Function>
  [[nodiscard]] bool is(Function function) const;

  Values values_;
};

// Whether an op works element by element, on one value or on two.
[[nodiscard]] bool is_pointwise(const OpNode& node);

}  // namespace ridgeline::onnx
