#pragma once

// Sums over rows, one for each channel, in fixed order: threads, then the warps of a block, then
// the blocks of a channel. The last block of a group to finish adds up what all of them left in
// memory, so that no second kernel is needed; which block that is changes nothing in the result.

#include "backends/cuda/device.cuh"
#include "backends/cuda/norm/channel_grid.h"

namespace ridgeline::cuda {

inline constexpr int kSumThreads = 512;
inline constexpr int kSumWarps = kSumThreads / 32;
inline constexpr int kMostGroupChannels = 64;  // 128 bytes of 16-bit elements

// The rows that a part's blocks add up when they take the tiles from the last to the first: only
// the last tile may be short.
struct PartRows {
  int tiles, more, tile_rows, missing;

  __device__ explicit PartRows(const ChannelGrid& grid)
      : tiles(grid.tiles / grid.parts),
        more(grid.tiles % grid.parts),
        tile_rows(grid.tile_rows()),
        missing(static_cast<int>(static_cast<std::int64_t>(grid.tiles) * tile_rows - grid.rows)) {}

  [[nodiscard]] __device__ __forceinline__ float of(int part) const {
    const std::int64_t whole = static_cast<std::int64_t>(tiles + (part < more ? 1 : 0)) * tile_rows;
    return static_cast<float>(whole - (part == 0 ? missing : 0));
  }
};

// Adds up the sums of a block's threads. Afterwards thread c has the totals of channel
// group_channel(c), for c below lanes * kPack. `shared` has room for
// kSumWarps * kSums * kMostGroupChannels floats.
template <int kPack, int kSums>
__device__ __forceinline__ void block_totals(const ChannelGrid& grid, float (&sums)[kSums][kPack],
                                             float* shared, float (&totals)[kSums]) {
  const int thread = static_cast<int>(threadIdx.x), width = grid.lanes * kPack;
  for (int offset = grid.lanes; offset < 32; offset *= 2) {
#pragma unroll
    for (int s = 0; s < kSums; ++s) {
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        sums[s][i] += __shfl_xor_sync(0xFFFFFFFFU, sums[s][i], offset);
      }
    }
  }
  const int lane = thread % 32, warp = thread / 32;
  if (lane < grid.lanes) {
#pragma unroll
    for (int s = 0; s < kSums; ++s) {
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        shared[(warp * kSums + s) * width + i * grid.lanes + lane] = sums[s][i];
      }
    }
  }
  __syncthreads();
#pragma unroll
  for (int s = 0; s < kSums; ++s) {
    totals[s] = 0.0F;
    if (thread < width) {
#pragma unroll
      for (int w = 0; w < kSumWarps; ++w) totals[s] += shared[(w * kSums + s) * width + thread];
    }
  }
}

// The channel whose totals thread c has: packs were stored element by element, so that neighbouring
// lanes write to neighbouring banks.
template <int kPack>
__device__ __forceinline__ std::int64_t group_channel(const ChannelGrid& grid, int group, int c) {
  return (static_cast<std::int64_t>(group) * grid.lanes + c % grid.lanes) * kPack + c / grid.lanes;
}

template <int kSums>
struct alignas(4 * kSums) Partial {
  float value[kSums];
};

// What the blocks leave in the workspace: for each channel one entry a part, side by side.
template <int kSums>
__device__ __forceinline__ Partial<kSums>* partials_of(void* workspace, const ChannelGrid& grid,
                                                       std::int64_t channel) {
  return static_cast<Partial<kSums>*>(workspace) + channel * grid.parts;
}

// From the second level of the cache, where other blocks' stores are seen.
__device__ __forceinline__ Partial<1> load_partial(const Partial<1>* partial) {
  return {__ldcg(partial->value)};
}
__device__ __forceinline__ Partial<2> load_partial(const Partial<2>* partial) {
  const float2 both = __ldcg(reinterpret_cast<const float2*>(partial));
  return {both.x, both.y};
}

// Whether this is the last of `count` blocks to come here; what the others stored before is then
// visible. The counter is 0 before the first and again after the last. All threads call this.
__device__ __forceinline__ bool arrives_last(unsigned* counter, int count) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    const auto most = static_cast<unsigned>(count - 1);
    last = atomicInc(counter, most) == most;
  }
  __syncthreads();
  if (last) __threadfence();
  return last;
}

// A few threads of the last block for each channel of its group, to go through the partials.
template <int kPack>
struct Merge {
  int helpers, helper;   // threads for a channel, a power of two of at most 32; which one this is
  std::int64_t channel;  // among all
  bool active;           // the channel exists

  __device__ Merge(const ChannelGrid& grid, int group) {
    const int width = grid.lanes * kPack, thread = static_cast<int>(threadIdx.x);
    helpers = min(32, kSumThreads / width);
    helper = thread % helpers;
    channel = static_cast<std::int64_t>(group) * width + thread / helpers;
    active = thread / helpers < width && channel < static_cast<std::int64_t>(grid.packs) * kPack;
  }

  // The sum over a channel's helpers, the same for each of them. All threads call this.
  [[nodiscard]] __device__ __forceinline__ float total(float value) const {
    for (int offset = helpers / 2; offset > 0; offset /= 2) {
      value += __shfl_xor_sync(0xFFFFFFFFU, value, offset);
    }
    return value;
  }
};

// Calls visit(part, partial) for the parts that fall to a helper; their loads are under way
// together.
template <int kSums, int kPack, typename Visit>
__device__ __forceinline__ void for_each_partial(const ChannelGrid& grid,
                                                 const Partial<kSums>* partials,
                                                 const Merge<kPack>& merge, Visit visit) {
  constexpr int kBatch = 20;
  for (int first = merge.helper; first < grid.parts; first += kBatch * merge.helpers) {
    Partial<kSums> loaded[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const int part = first + i * merge.helpers;
      if (part < grid.parts) loaded[i] = load_partial(partials + part);
    }
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const int part = first + i * merge.helpers;
      if (part < grid.parts) visit(part, loaded[i]);
    }
  }
}

}  // namespace ridgeline::cuda
