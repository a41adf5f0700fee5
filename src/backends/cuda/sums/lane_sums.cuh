#pragma once

// Sums over the lanes of a ChannelBlock. Only .cu files include this.

#include "backends/cuda/work_split.cuh"

namespace ridgeline::cuda {

// Adds the sums of a block's lanes, in the same order every time; lane 0 then has the totals. All
// `threads` threads of the block call this.
template <int threads, int count>
__device__ __forceinline__ void add_lanes(const ChannelBlock& block, int lane,
                                          float (&sums)[count]) {
  __shared__ float shared[threads * count];
  float* const own = shared + threadIdx.x * count;
#pragma unroll
  for (int i = 0; i < count; ++i) own[i] = sums[i];
  __syncthreads();
  int half = 1;
  while (2 * half < block.lanes) half *= 2;
  for (; half > 0; half /= 2) {
    if (lane < half && lane + half < block.lanes) {
#pragma unroll
      for (int i = 0; i < count; ++i) own[i] += own[half * block.packs * count + i];
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < count; ++i) sums[i] = own[i];
}

}  // namespace ridgeline::cuda
