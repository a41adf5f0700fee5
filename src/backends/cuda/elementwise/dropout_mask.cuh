#pragma once

// Which elements, or samples, dropout keeps. Only .cu files include this.

#include "backends/cuda/device.cuh"
#include "base/philox.h"
#include "ops/step_state.h"

namespace ridgeline::cuda {

// What one step's mask is a function of.
struct DropoutMask {
  std::uint64_t key, counter_high;
  float probability, scale;

  __device__ DropoutMask(const StepState& state, std::uint32_t layer, float given)
      : key(stream_key(state.seed, RandomStream::dropout)),
        counter_high(static_cast<std::uint64_t>(state.random_step) << 32 | layer),
        probability(given),
        scale(1.0F / (1.0F - given)) {}

  // Which of the four elements 4 * quad ... stay, one bit each.
  [[nodiscard]] __device__ __forceinline__ unsigned stay(std::uint64_t quad) const {
    const PhiloxBlock block = philox(key, quad, counter_high);
    unsigned bits = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const auto at = static_cast<std::size_t>(i);
      bits |= to_uniform(block[at]) < probability ? 0U : 1U << i;
    }
    return bits;
  }
  [[nodiscard]] __device__ __forceinline__ float factor(bool stays) const {
    return stays ? scale : 0.0F;
  }
};

}  // namespace ridgeline::cuda
