#pragma once

// Softmax cross-entropy, its gradient and the label's rank for one row that lies in the registers
// of a few neighbouring threads.

#include "backends/cuda/device.cuh"

namespace ridgeline::cuda {

// The same for all rows, and what belongs to one.
struct LossOptions {
  float smoothing = 0.0F;
  float diff_scale = 0.0F;  // loss scale ÷ valid rows
};
struct LossLabel {
  int label = 0;
  bool counts = false;  // else the row gives neither loss nor gradient
};

// Sums over rows.
struct LossSums {
  float loss = 0.0F, top1 = 0.0F, top5 = 0.0F;
};

template <int kLanes>
__device__ __forceinline__ float lanes_sum(float value) {
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xFFFFFFFFU, value, offset);
  }
  return value;
}

template <int kLanes>
__device__ __forceinline__ float lanes_max(float value) {
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFFU, value, offset));
  }
  return value;
}

// Thread `lane` of a row's kLanes has the logits of classes lane, lane + kLanes, ...; they become
// diff_logits, and lane 0 adds the row to its sums. For whole warps. A label that is no class makes
// the loss NaN: the device cannot complain otherwise.
template <int kLanes, int kOwn>
__device__ __forceinline__ void softmax_row(float (&x)[kOwn], int lane, int classes,
                                            const LossOptions& options, const LossLabel& row,
                                            LossSums& sums) {
  float largest = -INFINITY, own = 0.0F, logits = 0.0F;
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    const int k = lane + i * kLanes;
    if (k >= classes) continue;
    largest = fmaxf(largest, x[i]);
    logits += x[i];
    if (k == row.label) own = x[i];
  }
  largest = lanes_max<kLanes>(largest);
  logits = lanes_sum<kLanes>(logits);
  own = lanes_sum<kLanes>(own);
  if (row.label < 0 || row.label >= classes) own = NAN;

  // The rank is the number of logits that come before the label's: greater ones, and equal ones of
  // a lower index.
  float total = 0.0F, rank = 0.0F;
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    const int k = lane + i * kLanes;
    if (k >= classes) continue;
    const bool beaten = k < row.label ? own > x[i] : own >= x[i];
    if (k != row.label && !beaten) rank += 1.0F;
    x[i] = expf(x[i] - largest);
    total += x[i];
  }
  total = lanes_sum<kLanes>(total);
  rank = lanes_sum<kLanes>(rank);

  const float share = options.smoothing / static_cast<float>(classes), inverse = 1.0F / total;
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    const int k = lane + i * kLanes;
    const float target = k == row.label ? share + (1.0F - options.smoothing) : share;
    x[i] = row.counts && k < classes ? (x[i] * inverse - target) * options.diff_scale : 0.0F;
  }
  if (lane != 0 || !row.counts) return;
  const float log_sum = largest + logf(total);
  float loss = (1.0F - options.smoothing) * (log_sum - own);
  if (options.smoothing > 0.0F) {
    loss += options.smoothing * (log_sum - logits / static_cast<float>(classes));
  }
  sums.loss += loss;
  if (rank < 1.0F) sums.top1 += 1.0F;
  if (rank < 5.0F) sums.top5 += 1.0F;
}

}  // namespace ridgeline::cuda
