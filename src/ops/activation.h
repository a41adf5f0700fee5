#pragma once

#include <cstdint>
#include <string_view>

namespace ridgeline {

struct OpDef;

enum class ActivationKind : std::uint8_t { relu, relu6, leaky_relu, sigmoid, tanh, silu };

struct ActivationAttributes {
  ActivationKind kind = ActivationKind::relu;
  double slope = 0.01;  // leaky_relu's factor for negative input
};

[[nodiscard]] std::string_view name_of(ActivationKind kind);

// The gradient is computed from dst, so that an activation can work in place; SiLU alone needs src.
[[nodiscard]] constexpr bool backward_uses_src(ActivationKind kind) {
  return kind == ActivationKind::silu;
}

extern const OpDef activation_op;           // (src) -> dst
extern const OpDef activation_backward_op;  // (diff_dst, dst or src) -> diff_src

}  // namespace ridgeline
