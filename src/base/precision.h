#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/dtype.h"

namespace ridgeline {

// In what numbers a step computes. Master weights, statistics, losses and sums are always f32.
enum class Precision : std::uint8_t {
  fp32,
  tf32,  // f32 everywhere; products on units that take 10 fraction bits of their operands
  bf16,  // images, weights' copies and their gradients in bf16
  fp16,  // the same in f16, with a loss scale that keeps small gradients from vanishing
};
inline constexpr std::array<std::string_view, 4> kPrecisionNames = {"fp32", "tf32", "bf16", "fp16"};

[[nodiscard]] constexpr std::string_view name_of(Precision precision) {
  return kPrecisionNames[static_cast<std::size_t>(precision)];
}

// The type of images and of what flows between layers.
[[nodiscard]] constexpr DType image_type(Precision precision) {
  if (precision == Precision::bf16) return DType::bf16;
  return precision == Precision::fp16 ? DType::f16 : DType::f32;
}

// What a loss scale starts from, as torch.amp.GradScaler's; 1 where none is needed.
[[nodiscard]] constexpr double first_loss_scale(Precision precision) {
  return precision == Precision::fp16 ? 65536.0 : 1.0;
}

}  // namespace ridgeline
