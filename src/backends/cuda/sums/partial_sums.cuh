#pragma once

// The device's side of partial_sums.h.

#include "backends/cuda/device.cuh"
#include "backends/cuda/sums/partial_sums.h"
#include "ops/step_state.h"

namespace ridgeline::cuda {

__device__ __forceinline__ void write_sum(const PartialSums& sums, int element, float value) {
  for (int i = sums.segments - 1; i >= 0; --i) {
    if (element < sums.segment[i].begin) continue;
    if (sums.segment[i].out != nullptr)
      sums.segment[i].out[element - sums.segment[i].begin] = value;
    return;
  }
}

// Makes kSumsOfBlock elements; for a whole block of kSumThreads. A warp takes every eighth part.
__device__ inline void add_partials(const PartialSums& sums, int chunk) {
  constexpr int kWarps = kSumThreads / 32;
  __shared__ float shared[kWarps][kSumsOfBlock];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int element = chunk * kSumsOfBlock + lane;
  float sum = 0.0F;
  if (element < sums.elements) {
#pragma unroll 8
    for (int part = warp; part < sums.parts; part += kWarps) {
      sum += sums.partials[part * sums.stride + element];
    }
  }
  shared[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || element >= sums.elements) return;
  for (int i = 1; i < kWarps; ++i) sum += shared[i][lane];
  write_sum(sums, element, sum);
}

// Rows of the batch that count.
__device__ __forceinline__ std::int64_t valid_rows(const StepState* state, std::int64_t rows) {
  return state->valid_rows < rows ? state->valid_rows : rows;
}

// For one warp.
__device__ inline void finish_loss(const LossTotals& totals) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  double sums[kLossSums] = {};
  for (int part = lane; part < totals.parts; part += 32) {
    for (int i = 0; i < kLossSums; ++i) {
      sums[i] += static_cast<double>(totals.sums[part * totals.stride + i]);
    }
  }
  for (double& sum : sums) {
    for (int offset = 16; offset > 0; offset /= 2) {
      sum += __shfl_xor_sync(0xFFFFFFFFU, sum, offset);
    }
  }
  if (lane != 0) return;
  const auto valid = static_cast<double>(valid_rows(totals.state, totals.rows));
  const auto loss = static_cast<float>(valid > 0.0 ? sums[0] / valid : 0.0);
  if (totals.loss != nullptr) *totals.loss = loss;
  if (totals.new_totals == nullptr) return;
  totals.new_totals[0] = totals.totals[0] + static_cast<double>(loss) * valid;
  totals.new_totals[1] = totals.totals[1] + sums[1];
  totals.new_totals[2] = totals.totals[2] + sums[2];
  totals.new_totals[3] = totals.totals[3] + valid;
}

}  // namespace ridgeline::cuda
