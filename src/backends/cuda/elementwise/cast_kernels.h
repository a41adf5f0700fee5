#pragma once

#include "backends/cuda/launch.h"

namespace ridgeline::cuda {

// Rows of one type to rows of another.
struct Cast {
  DType from = DType::f32, to = DType::f32;
  Rows src, dst;
};
void launch_cast(const Cast& task, Stream stream);

// Dense weights from f32 to a type of 16 bits, and from filters x channels x taps (plain; a tap is
// a pixel of a filter) to filters x taps x channels (nhwc). Where the order is the same there is
// one channel of one tap and as many filters as elements.
struct WeightCast {
  const float* src = nullptr;
  void* dst = nullptr;
  std::int64_t filters = 0;
  std::int32_t channels = 1, taps = 1;
};

inline constexpr int kMostWeightCasts = 80;  // their pointers travel as a kernel's arguments
inline constexpr int kMostTaps = 4096;

// REQUIRES: at most kMostWeightCasts, of at most kMostTaps taps; to bf16 or f16.
void launch_weight_casts(const WeightCast* casts, int count, DType to, Stream stream);

}  // namespace ridgeline::cuda
