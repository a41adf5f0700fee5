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
[[nodiscard]] inline float float_of(float value) { return value; }

}  // namespace ridgeline
