#pragma once

// What follows the first layer of a small perceptron, on a tile of rows in shared memory: four
// threads take a row through its activation, the second layer, the loss and back.

#include "backends/cuda/sums/partial_sums.cuh"
#include "backends/cuda/training/softmax_row.cuh"
#include "backends/cuda/whole_step/mlp_step_kernels.h"

namespace ridgeline::cuda {

inline constexpr int kRowLanes = 4;

// Shared memory. Strides are odd, so that neighbouring rows lie in different banks.
struct MlpTile {
  float* hidden = nullptr;       // [row][hidden_stride]
  float* diff_hidden = nullptr;  // [row][hidden_stride]
  float* diff_logits = nullptr;  // [row][logits_stride]
  float* weights2 = nullptr;     // [class][hidden_stride]
  float* bias2 = nullptr;
  float* gradients = nullptr;  // weights2, bias2, bias1: this block's sums so far
  int hidden_stride = 0, logits_stride = 0;
};

__device__ __forceinline__ LossOptions loss_options(const MlpStep& step, std::int64_t valid) {
  const double weighted = step.state->loss_scale * step.diff_weight;
  const double scale = valid > 0 ? weighted / static_cast<double>(valid) : 0.0;
  return {step.smoothing, static_cast<float>(scale)};
}

// Loads the second layer and clears the gradients.
__device__ inline void begin_tile(const MlpStep& step, const MlpTile& tile) {
  const int threads = static_cast<int>(blockDim.x);
  for (int i = static_cast<int>(threadIdx.x); i < step.classes * step.hidden; i += threads) {
    const int k = i / step.hidden, unit = i % step.hidden;
    tile.weights2[k * tile.hidden_stride + unit] = step.weights2[i];
  }
  for (int i = static_cast<int>(threadIdx.x); i < step.classes; i += threads) {
    tile.bias2[i] = step.bias2[i];
  }
  for (int i = static_cast<int>(threadIdx.x); i < small_gradients(step); i += threads) {
    tile.gradients[i] = 0.0F;
  }
}

// One row: `hidden` holds what goes into the activation and then what comes out; diff_hidden is the
// gradient with respect to what went in. For whole warps, kRowLanes threads to a row, each of which
// has up to kUnits hidden units and kClasses classes: sums over the others run side by side.
template <int kUnits, int kClasses>
__device__ __forceinline__ void finish_row(const MlpStep& step, const MlpTile& tile, int row,
                                           const LossOptions& options, const LossLabel& label,
                                           LossSums& sums) {
  const int lane = static_cast<int>(threadIdx.x) % kRowLanes;
  float* const hidden = tile.hidden + row * tile.hidden_stride;
  float* const diff_logits = tile.diff_logits + row * tile.logits_stride;
  if (step.activation != kNoActivation) {
    for (int unit = lane; unit < step.hidden; unit += kRowLanes) {
      hidden[unit] = activate(step.activation, step.slope, hidden[unit]);
    }
  }
  __syncwarp();
  float x[kClasses];
#pragma unroll
  for (int i = 0; i < kClasses; ++i) {
    const int k = lane + i * kRowLanes;
    x[i] = k < step.classes ? tile.bias2[k] : 0.0F;
  }
#pragma unroll 2
  for (int unit = 0; unit < step.hidden; ++unit) {
    const float value = hidden[unit];
#pragma unroll
    for (int i = 0; i < kClasses; ++i) {
      const int k = lane + i * kRowLanes;
      if (k < step.classes) x[i] = fmaf(value, tile.weights2[k * tile.hidden_stride + unit], x[i]);
    }
  }
  softmax_row<kRowLanes>(x, lane, step.classes, options, label, sums);
#pragma unroll
  for (int i = 0; i < kClasses; ++i) {
    const int k = lane + i * kRowLanes;
    if (k < step.classes) diff_logits[k] = x[i];
  }
  __syncwarp();
  float diff[kUnits] = {};
#pragma unroll 2
  for (int k = 0; k < step.classes; ++k) {
    const float value = diff_logits[k];
#pragma unroll
    for (int i = 0; i < kUnits; ++i) {
      const int unit = lane + i * kRowLanes;
      if (unit < step.hidden) {
        diff[i] = fmaf(value, tile.weights2[k * tile.hidden_stride + unit], diff[i]);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kUnits; ++i) {
    const int unit = lane + i * kRowLanes;
    if (unit >= step.hidden) continue;
    if (step.activation != kNoActivation) {
      diff[i] = activate_backward(step.activation, step.slope, diff[i], hidden[unit]);
    }
    tile.diff_hidden[row * tile.hidden_stride + unit] = diff[i];
  }
}

// Adds a tile's rows to the gradients of weights2, bias2 and bias1: a thread to an element.
__device__ inline void add_small_gradients(const MlpStep& step, const MlpTile& tile, int rows) {
  const int weights = step.classes * step.hidden;
  for (int i = static_cast<int>(threadIdx.x); i < small_gradients(step);
       i += static_cast<int>(blockDim.x)) {
    float sum = 0.0F;
    if (i < weights) {
      const float* const diff = tile.diff_logits + i / step.hidden;
      const float* const hidden = tile.hidden + i % step.hidden;
#pragma unroll 4
      for (int row = 0; row < rows; ++row) {
        sum = fmaf(diff[row * tile.logits_stride], hidden[row * tile.hidden_stride], sum);
      }
    } else {
      const int unit = i - weights - step.classes;
      const float* const diff =
          unit < 0 ? tile.diff_logits + (i - weights) : tile.diff_hidden + unit;
      const int stride = unit < 0 ? tile.logits_stride : tile.hidden_stride;
#pragma unroll 4
      for (int row = 0; row < rows; ++row) sum += diff[row * stride];
    }
    tile.gradients[i] += sum;
  }
}

// Writes what the block has gathered. `shared` has room for 32 floats. The gradients are complete:
// every thread writes those it added up.
__device__ inline void end_tile(const MlpStep& step, const MlpTile& tile, const LossSums& sums,
                                float* shared) {
  float* const out =
      step.small_partials + static_cast<std::int64_t>(blockIdx.x) * small_stride(step);
  for (int i = static_cast<int>(threadIdx.x); i < small_gradients(step);
       i += static_cast<int>(blockDim.x)) {
    out[i] = tile.gradients[i];
  }
  const float values[kLossSums] = {sums.loss, sums.top1, sums.top5};
  for (int i = 0; i < kLossSums; ++i) {
    const float total = block_sum(values[i], shared);
    if (threadIdx.x == 0) out[small_gradients(step) + i] = total;
  }
}

}  // namespace ridgeline::cuda
