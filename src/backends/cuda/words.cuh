#pragma once

// Elements as the 32-bit words in which they are read. A pack that is read under a condition stays
// in words until it is used: choosing between words costs half of choosing between 16-bit elements,
// and so do the registers. Only .cu files include this.

#include <type_traits>

#include "backends/cuda/device.cuh"

namespace ridgeline::cuda {

// Elements in a word.
template <typename T>
inline constexpr int kWordElements = 4 / static_cast<int>(sizeof(T));

template <typename T>
__device__ __forceinline__ void widen_word(std::uint32_t word, float* to) {
  if constexpr (std::is_same_v<T, float>) {
    to[0] = __uint_as_float(word);
  } else if constexpr (std::is_same_v<T, bf16>) {
    to[0] = __uint_as_float(word << 16);
    to[1] = __uint_as_float(word & 0xFFFF0000U);
  } else {
    const float2 both = __half22float2(*reinterpret_cast<const __half2*>(&word));
    to[0] = both.x;
    to[1] = both.y;
  }
}

// Eight bytes, and sixteen.
template <typename T>
__device__ __forceinline__ void widen(uint2 words, float (&to)[2 * kWordElements<T>]) {
  widen_word<T>(words.x, to);
  widen_word<T>(words.y, to + kWordElements<T>);
}
template <typename T>
__device__ __forceinline__ void widen(uint4 words, float (&to)[4 * kWordElements<T>]) {
  widen_word<T>(words.x, to);
  widen_word<T>(words.y, to + kWordElements<T>);
  widen_word<T>(words.z, to + 2 * kWordElements<T>);
  widen_word<T>(words.w, to + 3 * kWordElements<T>);
}

// A word full of one number.
template <typename T>
__device__ __forceinline__ std::uint32_t filled_word(float value) {
  if constexpr (std::is_same_v<T, float>) {
    return __float_as_uint(value);
  } else {
    const T element = from_float<T>(value);
    const std::uint32_t bits = *reinterpret_cast<const std::uint16_t*>(&element);
    return bits | bits << 16;
  }
}

// Words of two 16-bit numbers: the greater ones (a NaN is greater than all), and all ones where
// they are equal.
template <typename T>
using Pair = std::conditional_t<std::is_same_v<T, bf16>, __nv_bfloat162, __half2>;

template <typename T>
__device__ __forceinline__ std::uint32_t greater_pair(std::uint32_t a, std::uint32_t b) {
  const Pair<T> greater =
      __hmax2_nan(*reinterpret_cast<const Pair<T>*>(&a), *reinterpret_cast<const Pair<T>*>(&b));
  return *reinterpret_cast<const std::uint32_t*>(&greater);
}

template <typename T>
__device__ __forceinline__ std::uint32_t equal_pair(std::uint32_t a, std::uint32_t b) {
  return __heq2_mask(*reinterpret_cast<const Pair<T>*>(&a), *reinterpret_cast<const Pair<T>*>(&b));
}

}  // namespace ridgeline::cuda
