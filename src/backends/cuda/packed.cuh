#pragma once

// Packs whose elements stay in whole words until they are used: between load and use a pack of
// 16-bit elements takes four registers, not eight.

#include "backends/cuda/device.cuh"

namespace ridgeline::cuda {

// One of the two elements of a word as a float, and a word of two rounded floats.
template <typename T>
__device__ __forceinline__ float element_of(unsigned word, bool high);
template <>
__device__ __forceinline__ float element_of<bf16>(unsigned word, bool high) {
  return __uint_as_float(high ? word & 0xFFFF0000U : word << 16);
}
template <>
__device__ __forceinline__ float element_of<f16>(unsigned word, bool high) {
  return __half2float(__ushort_as_half(static_cast<unsigned short>(high ? word >> 16 : word)));
}

template <typename T>
__device__ __forceinline__ unsigned word_of(float low, float high);
template <>
__device__ __forceinline__ unsigned word_of<bf16>(float low, float high) {
  const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&both);
}
template <>
__device__ __forceinline__ unsigned word_of<f16>(float low, float high) {
  const __half2 both = __floats2half2_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&both);
}

// 16 bytes. The address of a load or store must be a multiple of them.
template <typename T, int kPack>
struct Packed {
  static_assert(sizeof(T) * kPack == 16);
  uint4 words;

  [[nodiscard]] __device__ __forceinline__ unsigned word(int index) const {
    return index == 0 ? words.x : index == 1 ? words.y : index == 2 ? words.z : words.w;
  }
  [[nodiscard]] __device__ __forceinline__ float get(int index) const {
    if constexpr (sizeof(T) == 4) {
      return __uint_as_float(word(index));
    } else {
      return element_of<T>(word(index / 2), index % 2 != 0);
    }
  }

  static __device__ __forceinline__ Packed of(const float (&values)[kPack]) {
    if constexpr (sizeof(T) == 4) {
      return {{__float_as_uint(values[0]), __float_as_uint(values[1]), __float_as_uint(values[2]),
               __float_as_uint(values[3])}};
    } else {
      return {{word_of<T>(values[0], values[1]), word_of<T>(values[2], values[3]),
               word_of<T>(values[4], values[5]), word_of<T>(values[6], values[7])}};
    }
  }
  static __device__ __forceinline__ Packed load(const T* address) {
    return {*reinterpret_cast<const uint4*>(address)};
  }
  // For what is read a last time: it leaves the caches before what will be read again.
  static __device__ __forceinline__ Packed load_once(const T* address) {
    return {__ldcs(reinterpret_cast<const uint4*>(address))};
  }
  __device__ __forceinline__ void store(T* address) const {
    *reinterpret_cast<uint4*>(address) = words;
  }
};

// Two elements of 16 bits: one word. The address must be a multiple of it.
template <typename T>
struct Packed<T, 2> {
  static_assert(sizeof(T) == 2);
  unsigned word;

  [[nodiscard]] __device__ __forceinline__ float get(int index) const {
    return element_of<T>(word, index != 0);
  }
  static __device__ __forceinline__ Packed of(const float (&values)[2]) {
    return {word_of<T>(values[0], values[1])};
  }
  static __device__ __forceinline__ Packed load(const T* address) {
    return {*reinterpret_cast<const unsigned*>(address)};
  }
  static __device__ __forceinline__ Packed load_once(const T* address) {
    return {__ldcs(reinterpret_cast<const unsigned*>(address))};
  }
  __device__ __forceinline__ void store(T* address) const {
    *reinterpret_cast<unsigned*>(address) = word;
  }
};

// A single element, wherever it lies.
template <typename T>
struct Packed<T, 1> {
  T element;

  [[nodiscard]] __device__ __forceinline__ float get(int) const { return to_float(element); }
  static __device__ __forceinline__ Packed of(const float (&values)[1]) {
    return {from_float<T>(values[0])};
  }
  static __device__ __forceinline__ Packed load(const T* address) { return {*address}; }
  static __device__ __forceinline__ Packed load_once(const T* address) { return {*address}; }
  __device__ __forceinline__ void store(T* address) const { *address = element; }
};

}  // namespace ridgeline::cuda
