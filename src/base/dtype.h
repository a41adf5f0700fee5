#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ridgeline {

enum class DType : std::uint8_t { f64, f32, bf16, f16, u8, i32 };

[[nodiscard]] constexpr std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 8;
    case DType::f32:
      return 4;
    case DType::i32:
      return 4;
    case DType::bf16:
      return 2;
    case DType::f16:
      return 2;
    case DType::u8:
      return 1;
  }
  return 0;
}

[[nodiscard]] constexpr bool is_float(DType dtype) {
  return dtype != DType::u8 && dtype != DType::i32;
}

// What sums over values of a type are taken and kept in: statistics, losses, biases' gradients.
[[nodiscard]] constexpr DType wide_type(DType dtype) {
  return dtype == DType::f64 ? DType::f64 : DType::f32;
}

[[nodiscard]] constexpr std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return "f64";
    case DType::f32:
      return "f32";
    case DType::bf16:
      return "bf16";
    case DType::f16:
      return "f16";
    case DType::u8:
      return "u8";
    case DType::i32:
      return "i32";
  }
  return "?";
}

}  // namespace ridgeline
