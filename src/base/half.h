#pragma once

// The two 16-bit float types on the host: storage and conversion, no arithmetic.

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>

namespace ridgeline {

struct BFloat16 {
  std::uint16_t bits = 0;
};
struct Float16 {
  std::uint16_t bits = 0;
};

[[nodiscard]] inline double widened(std::floating_point auto value) { return value; }
[[nodiscard]] inline double widened(BFloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}
[[nodiscard]] inline double widened(Float16 value) {
  const int exponent = value.bits >> 10 & 0x1F, fraction = value.bits & 0x3FF;
  double size = 0.0;
  if (exponent == 0x1F) {
    size = fraction == 0 ? std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  } else {
    size = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
  }
  return (value.bits & 0x8000) != 0 ? -size : size;
}

// A float of `digits` significant bits, exponents from `smallest` (of the least normal number) to
// `largest`: the nearest number, ties to even; beyond the largest, infinity.
[[nodiscard]] inline double rounded(double value, int digits, int smallest, int largest) {
  if (!std::isfinite(value) || value == 0.0) return value;
  const int exponent = std::max(std::ilogb(value), smallest);
  const double unit = std::ldexp(1.0, exponent - digits + 1);
  const double nearest = std::nearbyint(value / unit) * unit;
  if (std::abs(nearest) >= std::ldexp(1.0, largest + 1)) {
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  }
  return nearest;
}

template <typename T>
[[nodiscard]] T narrowed(double value) {
  if constexpr (std::floating_point<T>) {
    return static_cast<T>(value);
  } else if constexpr (std::same_as<T, BFloat16>) {
    const auto near = static_cast<float>(rounded(value, 8, -126, 127));
    if (std::isnan(near)) return {0x7FC0};
    return {static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(near) >> 16)};
  } else {
    const double near = rounded(value, 11, -14, 15);
    const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
    if (std::isnan(near)) return {0x7E00};
    if (std::isinf(near)) return {static_cast<std::uint16_t>(sign | 0x7C00)};
    // In units of the least number, 2^-24, below 2^-14; else exponent and fraction.
    const double size = std::abs(near);
    if (size < std::ldexp(1.0, -14)) {
      return {static_cast<std::uint16_t>(sign | static_cast<int>(std::ldexp(size, 24)))};
    }
    const int exponent = std::ilogb(size);
    const int fraction = static_cast<int>(std::ldexp(size, 10 - exponent)) - 1024;
    return {static_cast<std::uint16_t>(sign | (exponent + 15) << 10 | fraction)};
  }
}

// narrowed<BFloat16> and widened from and to a float, in a few instructions.
[[nodiscard]] inline BFloat16 bf16_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return {0x7FC0};
  return {static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)};
}
[[nodiscard]] inline float float_of(BFloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}
// The same of fp16.
[[nodiscard]] inline Float16 f16_of(float value) {
  constexpr std::uint32_t kInfinity = 0x477FF000, kLeastNormal = 0x38800000;  // as floats
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7FFFFFFF;
  if (size > 0x7F800000) return {0x7E00};
  if (size >= kInfinity) return {static_cast<std::uint16_t>(sign | 0x7C00)};
  if (size < kLeastNormal) {
    // Beside one half a float's last digit is the least number of fp16.
    const float beside = std::bit_cast<float>(size) + 0.5F;
    return {static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(beside) - 0x3F000000))};
  }
  const std::uint32_t near = size + 0xFFF + (size >> 13 & 1);
  return {static_cast<std::uint16_t>(sign | (near - 0x38000000) >> 13)};
}
[[nodiscard]] inline float float_of(Float16 value) {
  const std::uint32_t sign = std::uint32_t{value.bits & 0x8000U} << 16, size = value.bits & 0x7FFFU;
  if (size < 0x400) {
    const float small = static_cast<float>(size) * 0x1p-24F;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(small) | sign);
  }
  const std::uint32_t rebased = (size << 13) + 0x38000000;
  return std::bit_cast<float>(sign | (size < 0x7C00 ? rebased : rebased + 0x38000000));
}
[[nodiscard]] inline float float_of(float value) { return value; }

}  // namespace ridgeline
