#pragma once

// What the kernels' files share on the device's side: element types, packs of 16 bytes, sums over
// warps and blocks. Only .cu files include this.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "backends/cuda/launch.h"

namespace ridgeline::cuda {

using bf16 = __nv_bfloat16;
using f16 = __half;

__device__ __forceinline__ float to_float(float value) { return value; }
__device__ __forceinline__ float to_float(bf16 value) { return __bfloat162float(value); }
__device__ __forceinline__ float to_float(f16 value) { return __half2float(value); }

template <typename T>
__device__ __forceinline__ T from_float(float value);
template <>
__device__ __forceinline__ float from_float<float>(float value) {
  return value;
}
template <>
__device__ __forceinline__ bf16 from_float<bf16>(float value) {
  return __float2bfloat16_rn(value);
}
template <>
__device__ __forceinline__ f16 from_float<f16>(float value) {
  return __float2half_rn(value);
}

// Elements that are loaded and stored at once; the address must be a multiple of the pack's bytes.
template <typename T, int count>
struct alignas(sizeof(T) * count) Pack {
  T elements[count];

  __device__ __forceinline__ float get(int index) const { return to_float(elements[index]); }
  __device__ __forceinline__ void set(int index, float value) {
    elements[index] = from_float<T>(value);
  }
};

// As many elements as fit 16 bytes.
template <typename T>
inline constexpr int kFullPack = 16 / static_cast<int>(sizeof(T));

template <typename T, int count>
__device__ __forceinline__ Pack<T, count> load(const T* address) {
  return *reinterpret_cast<const Pack<T, count>*>(address);
}

template <typename T, int count>
__device__ __forceinline__ void store(T* address, const Pack<T, count>& pack) {
  *reinterpret_cast<Pack<T, count>*>(address) = pack;
}

__device__ __forceinline__ float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xFFFFFFFFU, value, offset);
  }
  return value;
}

// The sum over all threads of a block of whole warps, for every thread; always added in the same
// order. `shared` has room for 32 floats and is free again afterwards.
__device__ __forceinline__ float block_sum(float value, float* shared) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  value = warp_sum(value);
  if (lane == 0) shared[warp] = value;
  __syncthreads();
  const int warps = static_cast<int>(blockDim.x) / 32;
  value = warp_sum(lane < warps ? shared[lane] : 0.0F);
  __syncthreads();
  return value;
}

__device__ __forceinline__ float hard_sigmoid(float x) {
  const float shifted = x + 3.0F;
  const float bounded = shifted < 0.0F ? 0.0F : (shifted > 6.0F ? 6.0F : shifted);
  return bounded * (1.0F / 6.0F);
}

// The normal distribution; erfc keeps the digits of the far left tail.
__device__ __forceinline__ float normal_below(float x) { return 0.5F * erfcf(x * -0.707106781F); }

// 2 √(2/π) (x + 0.044715 x³): the sigmoid of it approximates the normal distribution.
__device__ __forceinline__ float gelu_exponent(float x) {
  return 1.595769122F * x * (1.0F + 0.044715F * x * x);
}

// Activations by their kind. `slope` belongs to leaky_relu.
__device__ __forceinline__ float activate(int kind, float slope, float x) {
  switch (static_cast<ActivationKind>(kind)) {
    case ActivationKind::relu:
      return x > 0.0F ? x : (isnan(x) ? x : 0.0F);
    case ActivationKind::relu6:
      return isnan(x) ? x : fminf(fmaxf(x, 0.0F), 6.0F);
    case ActivationKind::leaky_relu:
      return x > 0.0F ? x : x * slope;
    case ActivationKind::sigmoid:
      return 1.0F / (1.0F + expf(-x));
    case ActivationKind::tanh:
      return tanhf(x);
    case ActivationKind::silu:
      return x / (1.0F + expf(-x));
    case ActivationKind::hard_sigmoid:
      return hard_sigmoid(x);
    case ActivationKind::hard_swish:
      return x * hard_sigmoid(x);
    case ActivationKind::gelu:
      return x * normal_below(x);
    case ActivationKind::gelu_tanh:
      return x / (1.0F + expf(-gelu_exponent(x)));
  }
  return x;
}

// The gradient with respect to src from that to dst; `kept` is dst, or src where
// backward_uses_src. A NaN that was kept lets the gradient pass, as in the reference.
__device__ __forceinline__ float activate_backward(int kind, float slope, float diff, float kept) {
  switch (static_cast<ActivationKind>(kind)) {
    case ActivationKind::relu:
      return kept <= 0.0F ? 0.0F : diff;
    case ActivationKind::relu6:
      return kept <= 0.0F || kept >= 6.0F ? 0.0F : diff;
    case ActivationKind::leaky_relu:
      return kept > 0.0F ? diff : diff * slope;
    case ActivationKind::sigmoid:
      return diff * kept * (1.0F - kept);
    case ActivationKind::tanh:
      return diff * (1.0F - kept * kept);
    case ActivationKind::silu: {
      const float sigmoid = 1.0F / (1.0F + expf(-kept));
      return diff * sigmoid * (1.0F + kept * (1.0F - sigmoid));
    }
    case ActivationKind::hard_sigmoid:
      return kept <= 0.0F || kept >= 1.0F ? 0.0F : diff * (1.0F / 6.0F);
    case ActivationKind::hard_swish:
      if (kept < -3.0F) return 0.0F;
      return kept > 3.0F ? diff : diff * (kept * (1.0F / 3.0F) + 0.5F);
    case ActivationKind::gelu: {
      const float density = 0.398942280F * expf(-0.5F * kept * kept);
      return diff * (normal_below(kept) + kept * density);
    }
    case ActivationKind::gelu_tanh: {
      const float sigmoid = 1.0F / (1.0F + expf(-gelu_exponent(kept)));
      const float slope_of_exponent = 1.595769122F * (1.0F + 0.134145F * kept * kept);
      return diff * sigmoid * (1.0F + kept * (1.0F - sigmoid) * slope_of_exponent);
    }
  }
  return diff;
}

}  // namespace ridgeline::cuda
