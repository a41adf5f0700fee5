#pragma once

#include <cstdint>
#include <string_view>

namespace ridgeline {

struct OpDef;

enum class ActivationKind : std::uint8_t {
  relu,
  relu6,
  leaky_relu,
  sigmoid,
  tanh,
  silu,          // x * sigmoid(x)
  hard_sigmoid,  // relu6(x + 3) / 6
  hard_swish,    // x * hard_sigmoid(x)
  gelu,          // x * Φ(x), Φ the normal distribution
  gelu_tanh,     // the same with Φ(x) approximated by a tanh of a polynomial
};

struct ActivationAttributes {
  ActivationKind kind = ActivationKind::relu;
  double slope = 0.01;  // leaky_relu's factor for negative input
};

[[nodiscard]] std::string_view name_of(ActivationKind kind);

// The gradient is computed from dst, so that an activation can work in place. Those that rise and
// fall need src: one dst belongs to two of it.
[[nodiscard]] constexpr bool backward_uses_src(ActivationKind kind) {
  return kind == ActivationKind::silu || kind == ActivationKind::hard_swish ||
         kind == ActivationKind::gelu || kind == ActivationKind::gelu_tanh;
}

extern const OpDef activation_op;           // (src) -> dst
extern const OpDef activation_backward_op;  // (diff_dst, dst or src) -> diff_src

}  // namespace ridgeline
