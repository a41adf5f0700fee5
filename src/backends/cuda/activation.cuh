#pragma once

// Activations and their gradients for some numbers at once. What becomes a 16-bit number takes
// approximations whose errors (below 1e-5 of the result) are far below its rounding.

#include "backends/cuda/device.cuh"

namespace ridgeline::cuda {

__device__ __forceinline__ float fast_sigmoid(float x) {
  return __fdividef(1.0F, 1.0F + __expf(-x));
}

// The normal distribution at x, and its density. What lies beyond |x| is the density times a
// polynomial of 1 / (1 + 0.31 |x|), which keeps the digits of the far left tail.
struct Normal {
  float below, density;
};
__device__ __forceinline__ Normal fast_normal(float x) {
  constexpr float kTerms[] = {-0.188078948F, 0.460936482F, 0.0292695723F,
                              0.340136398F,  0.300430671F, 0.310613152F};
  const float density = 0.398942280F * __expf(-0.5F * x * x);
  const float t = __fdividef(1.0F, fmaf(0.31F, fabsf(x), 1.0F));
  float sum = kTerms[0];
#pragma unroll
  for (int i = 1; i < 6; ++i) sum = fmaf(sum, t, kTerms[i]);
  const float beyond = density * t * sum;
  return {x < 0.0F ? beyond : 1.0F - beyond, density};
}

// As activate and activate_backward of device.cuh, where the kind is known.
template <ActivationKind kind, bool fast>
__device__ __forceinline__ float activate_as(float slope, float x) {
  if constexpr (fast && kind == ActivationKind::sigmoid) return fast_sigmoid(x);
  if constexpr (fast && kind == ActivationKind::silu) return x * fast_sigmoid(x);
  if constexpr (fast && kind == ActivationKind::gelu) return x * fast_normal(x).below;
  if constexpr (fast && kind == ActivationKind::gelu_tanh) {
    return x * fast_sigmoid(gelu_exponent(x));
  }
  return activate(static_cast<int>(kind), slope, x);
}
template <ActivationKind kind, bool fast>
__device__ __forceinline__ float activate_backward_as(float slope, float diff, float kept) {
  if constexpr (fast && kind == ActivationKind::silu) {
    const float sigmoid = fast_sigmoid(kept);
    return diff * sigmoid * (1.0F + kept * (1.0F - sigmoid));
  }
  if constexpr (fast && kind == ActivationKind::gelu) {
    const Normal normal = fast_normal(kept);
    return diff * (normal.below + kept * normal.density);
  }
  return activate_backward(static_cast<int>(kind), slope, diff, kept);
}

template <ActivationKind given>
struct KindOf {
  static constexpr ActivationKind kind = given;
};

// Calls body with the kind as a constant; not at all without an activation.
template <typename Body>
__device__ __forceinline__ void with_kind(int kind, const Body& body) {
  switch (static_cast<ActivationKind>(kind)) {
    case ActivationKind::relu:
      return body(KindOf<ActivationKind::relu>{});
    case ActivationKind::relu6:
      return body(KindOf<ActivationKind::relu6>{});
    case ActivationKind::leaky_relu:
      return body(KindOf<ActivationKind::leaky_relu>{});
    case ActivationKind::sigmoid:
      return body(KindOf<ActivationKind::sigmoid>{});
    case ActivationKind::tanh:
      return body(KindOf<ActivationKind::tanh>{});
    case ActivationKind::silu:
      return body(KindOf<ActivationKind::silu>{});
    case ActivationKind::hard_sigmoid:
      return body(KindOf<ActivationKind::hard_sigmoid>{});
    case ActivationKind::hard_swish:
      return body(KindOf<ActivationKind::hard_swish>{});
    case ActivationKind::gelu:
      return body(KindOf<ActivationKind::gelu>{});
    case ActivationKind::gelu_tanh:
      return body(KindOf<ActivationKind::gelu_tanh>{});
  }
}

// Numbers that become elements of type T; their kind is looked at once for all of them.
template <typename T, int count>
__device__ __forceinline__ void activate_all(int kind, float slope, float (&x)[count]) {
  with_kind(kind, [&](auto of) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      x[i] = activate_as<decltype(of)::kind, sizeof(T) == 2>(slope, x[i]);
    }
  });
}
template <typename T, int count>
__device__ __forceinline__ void activate_all_backward(int kind, float slope, float (&diff)[count],
                                                      const float (&kept)[count]) {
  with_kind(kind, [&](auto of) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      diff[i] = activate_backward_as<decltype(of)::kind, sizeof(T) == 2>(slope, diff[i], kept[i]);
    }
  });
}

}  // namespace ridgeline::cuda
