#pragma once

// What kernels over rows and elements share: the choice of the element type, where a thread
// stands, and activations that are mere bounds.

#include <limits>
#include <type_traits>

#include "backends/cuda/norm/channel_grid.h"
#include "backends/cuda/packed.cuh"

namespace ridgeline::cuda {

inline constexpr int kRowThreads = 256;

// Calls body with a value of the element type. REQUIRES: f32, bf16 or f16.
template <typename Body>
void with_element_type(DType dtype, Body&& body) {
  if (dtype == DType::bf16) {
    body(bf16{});
  } else if (dtype == DType::f16) {
    body(f16{});
  } else {
    body(float{});
  }
}

// Calls body with the size of a pack, one of those that word_pack_for gives, as a constant.
// REQUIRES: more than one element.
template <typename T, typename Body>
void with_wide_pack(int pack, Body&& body) {
  if constexpr (sizeof(T) == 2) {
    if (pack == 2) return body.template operator()<2>();
  }
  body.template operator()<kFullPack<T>>();
}
template <typename T, typename Body>
void with_pack(int pack, Body&& body) {
  if (pack > 1) return with_wide_pack<T>(pack, body);
  body.template operator()<1>();
}

// Where a thread stands in a grid.
struct GridThread {
  int group, part, lane, row;
  int pack;     // in the row
  bool active;  // it has work

  __device__ explicit GridThread(const ChannelGrid& grid) {
    group = static_cast<int>(blockIdx.x) % grid.groups;
    part = static_cast<int>(blockIdx.x) / grid.groups;
    lane = static_cast<int>(threadIdx.x) % grid.lanes;
    row = static_cast<int>(threadIdx.x) / grid.lanes;
    pack = group * grid.lanes + lane;
    active = row < grid.thread_rows && pack < grid.packs;
  }

  // Whether a tile that is not full has the thread's u-th row and pack.
  [[nodiscard]] __device__ __forceinline__ bool inside(const ChannelGrid& grid, int tile,
                                                       int u) const {
    const std::int64_t behind =
        static_cast<std::int64_t>(tile) * grid.tile_rows() + u * grid.thread_rows + row + 1;
    return u < grid.unroll &&
           (behind < grid.rows || (behind == grid.rows && pack < grid.last_packs));
  }
};

// A thread's place in an operand: its pack in its first row of the present tile.
template <typename T, int kPack>
struct Cursor {
  char* at;

  __device__ __forceinline__ Cursor(const RowOperand& operand, const ChannelGrid& grid,
                                    const GridThread& thread, int tile)
      : at(operand.data +
           (static_cast<std::int64_t>(tile) * grid.tile_rows() + thread.row) * operand.stride +
           static_cast<std::int64_t>(thread.pack) * kPack * static_cast<int>(sizeof(T))) {}

  // The thread's u-th row.
  [[nodiscard]] __device__ __forceinline__ T* row(const RowOperand& operand, int u) const {
    return reinterpret_cast<T*>(at + u * operand.step);
  }
  __device__ __forceinline__ void next_tile(const RowOperand& operand) { at += operand.jump; }
};

// One number for each channel of a group, on the way from one thread a channel to all threads.
template <int kPack>
struct GroupNumbers {
  static_assert(kMostGroupPacks * kPack <= kRowThreads);
  float numbers[kMostGroupPacks * kPack];

  __device__ __forceinline__ void read(const GridThread& thread, float (&own)[kPack]) const {
#pragma unroll
    for (int i = 0; i < kPack; ++i) own[i] = numbers[thread.lane * kPack + i];
  }
};

// Calls body with true_type for a tile in which nothing is missing, else with false_type: the
// checks of every row are compiled for the latter alone.
template <typename Body>
__device__ __forceinline__ void for_tile(const ChannelGrid& grid, int tile, Body&& body) {
  if (tile < grid.full_tiles) {
    body(std::true_type{});
  } else {
    body(std::false_type{});
  }
}

// No activation, ReLU and ReLU6 as bounds; NaN passes.
struct ActivationBounds {
  float lower = 0.0F, upper = 0.0F;
};

inline bool is_bounded(int activation) {
  return activation == kNoActivation || activation == static_cast<int>(ActivationKind::relu) ||
         activation == static_cast<int>(ActivationKind::relu6);
}

inline ActivationBounds bounds_of(int activation) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (activation == kNoActivation) return {-kInfinity, kInfinity};
  return {0.0F, activation == static_cast<int>(ActivationKind::relu6) ? 6.0F : kInfinity};
}

__device__ __forceinline__ float bounded(ActivationBounds bounds, float x) {
  x = x < bounds.lower ? bounds.lower : x;
  return x > bounds.upper ? bounds.upper : x;
}

// The bound at and above which ReLU and ReLU6 give no gradient: none (no comparison with NaN is
// true) and 6.
inline float closing_bound(int activation) {
  return activation == static_cast<int>(ActivationKind::relu6)
             ? 6.0F
             : std::numeric_limits<float>::quiet_NaN();
}

// Whether the gradient passes an activation with bounds where its result was `kept`.
__device__ __forceinline__ bool is_open(float kept, float closing) {
  return !(kept <= 0.0F || kept >= closing);
}

}  // namespace ridgeline::cuda
