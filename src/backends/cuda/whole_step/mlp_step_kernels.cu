// A small perceptron's step on CUDA cores, for any sizes within the limits and for float features.
// The first kernel takes tiles of rows forward, through the loss and back to the hidden layer; the
// second multiplies what came out with the rows again; the third adds the blocks' sums.

#include "backends/cuda/whole_step/mlp_rows.cuh"

namespace ridgeline::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kDepth = 16;  // inputs, or rows in the gradient, that are in shared memory at a time

__device__ __forceinline__ float source(const MlpStep& step, const std::uint8_t*,
                                        std::int64_t index) {
  return fmaf(static_cast<float>(step.pixels[index]), step.scale, step.shift);
}
__device__ __forceinline__ float source(const MlpStep& step, const float*, std::int64_t index) {
  return step.floats[index];
}

// The tile of a block: 4 x 4 sums in each thread's registers, kUnits units by `others` rows or
// inputs.
template <int kUnits>
struct Blocking {
  static constexpr int unit_threads = kUnits / 4;
  static constexpr int others = 4 * kThreads / unit_threads;
};

// sums[i][j] += left[4 own_left + i] * right[4 own_right + j] over kDepth rows of shared memory.
__device__ __forceinline__ void multiply(const float* left, int left_stride, const float* right,
                                         int right_stride, float (&sums)[4][4]) {
#pragma unroll
  for (int k = 0; k < kDepth; ++k) {
    const float4 l = *reinterpret_cast<const float4*>(left + k * left_stride);
    const float4 r = *reinterpret_cast<const float4*>(right + k * right_stride);
    const float lefts[4] = {l.x, l.y, l.z, l.w}, rights[4] = {r.x, r.y, r.z, r.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) sums[i][j] = fmaf(lefts[i], rights[j], sums[i][j]);
    }
  }
}

template <typename T, int kUnits>
__global__ void __launch_bounds__(kThreads) mlp_forward(MlpStep step) {
  constexpr int kRows = Blocking<kUnits>::others;
  constexpr int kSrcStride = kRows + 4, kWeightStride = kUnits + 4, kHiddenStride = kUnits + 1;
  constexpr int kLogitsStride = kMaxMlpClasses + 1;
  constexpr int kProduct = kDepth * (kSrcStride + kWeightStride);
  constexpr int kDiffs = kRows * (kLogitsStride + kHiddenStride);
  __shared__ __align__(16) float scratch[kProduct > kDiffs ? kProduct : kDiffs];
  __shared__ float hidden[kRows * kHiddenStride];
  __shared__ float weights2[kMaxMlpClasses * kHiddenStride], bias2[kMaxMlpClasses];
  __shared__ float gradients[kMaxMlpClasses * kHiddenStride + kUnits];
  __shared__ float reduction[32];
  const MlpTile tile = {hidden,        scratch + kRows * kLogitsStride,
                        scratch,       weights2,
                        bias2,         gradients,
                        kHiddenStride, kLogitsStride};
  float* const src = scratch;                            // [input][row]
  float* const weights = scratch + kDepth * kSrcStride;  // [input][unit]
  const int thread = static_cast<int>(threadIdx.x);
  const int unit4 = thread % Blocking<kUnits>::unit_threads * 4;
  const int row4 = thread / Blocking<kUnits>::unit_threads * 4;

  begin_tile(step, tile);
  const std::int64_t valid = valid_rows(step.state, step.rows);
  const LossOptions options = loss_options(step, valid);
  LossSums sums;
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kRows; first < step.rows;
       first += static_cast<std::int64_t>(gridDim.x) * kRows) {
    float acc[4][4] = {};
    for (int begin = 0; begin < step.inputs; begin += kDepth) {
      __syncthreads();
      for (int i = thread; i < kRows * kDepth; i += kThreads) {
        const int k = i % kDepth, row = i / kDepth;
        const bool inside = begin + k < step.inputs && first + row < step.rows;
        src[k * kSrcStride + row] = inside ? source(step, static_cast<const T*>(nullptr),
                                                    (first + row) * step.inputs + begin + k)
                                           : 0.0F;
      }
      for (int i = thread; i < kUnits * kDepth; i += kThreads) {
        const int k = i % kDepth, unit = i / kDepth;
        const bool inside = begin + k < step.inputs && unit < step.hidden;
        weights[k * kWeightStride + unit] =
            inside ? step.weights1[unit * step.inputs + begin + k] : 0.0F;
      }
      __syncthreads();
      multiply(src + row4, kSrcStride, weights + unit4, kWeightStride, acc);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int unit = unit4 + j;
        if (unit >= step.hidden) continue;
        hidden[(row4 + i) * kHiddenStride + unit] = acc[i][j] + step.bias1[unit];
      }
    }
    __syncthreads();
    for (int row = thread / kRowLanes; row < kRows; row += kThreads / kRowLanes) {
      const bool counts = first + row < valid;
      const LossLabel label = {counts ? step.labels[first + row] : 0, counts};
      finish_row<kUnits / kRowLanes, kMaxMlpClasses / kRowLanes>(step, tile, row, options, label,
                                                                 sums);
    }
    __syncthreads();
    for (int i = thread; i < kRows * step.hidden; i += kThreads) {
      const int row = i / step.hidden;
      if (first + row >= step.rows) break;
      step.diff_hidden[first * step.hidden + i] =
          tile.diff_hidden[row * kHiddenStride + i % step.hidden];
    }
    add_small_gradients(step, tile, kRows);
  }
  end_tile(step, tile, sums, reduction);
}

// diff_weights1 over the rows of one slice, for some inputs.
template <typename T, int kUnits>
__global__ void __launch_bounds__(kThreads) mlp_first_weights(MlpStep step, MlpGeneralPlan plan) {
  constexpr int kInputs = Blocking<kUnits>::others;
  constexpr int kSrcStride = kInputs + 4, kDiffStride = kUnits + 4;
  __shared__ __align__(16) float src[kDepth * kSrcStride];    // [row][input]
  __shared__ __align__(16) float diff[kDepth * kDiffStride];  // [row][unit]
  const int thread = static_cast<int>(threadIdx.x);
  const int unit4 = thread % Blocking<kUnits>::unit_threads * 4;
  const int input4 = thread / Blocking<kUnits>::unit_threads * 4;
  const int begin = static_cast<int>(blockIdx.x) * kInputs;
  const std::int64_t slice = static_cast<std::int64_t>(blockIdx.y) * plan.rows_of_slice;
  const std::int64_t end =
      slice + plan.rows_of_slice < step.rows ? slice + plan.rows_of_slice : step.rows;
  float acc[4][4] = {};
  for (std::int64_t first = slice; first < end; first += kDepth) {
    __syncthreads();
    for (int i = thread; i < kDepth * kInputs; i += kThreads) {
      const int row = i / kInputs, k = i % kInputs;
      const bool inside = begin + k < step.inputs && first + row < end;
      src[row * kSrcStride + k] = inside ? source(step, static_cast<const T*>(nullptr),
                                                  (first + row) * step.inputs + begin + k)
                                         : 0.0F;
    }
    for (int i = thread; i < kDepth * kUnits; i += kThreads) {
      const int row = i / kUnits, unit = i % kUnits;
      const bool inside = unit < step.hidden && first + row < end;
      diff[row * kDiffStride + unit] =
          inside ? step.diff_hidden[(first + row) * step.hidden + unit] : 0.0F;
    }
    __syncthreads();
    multiply(diff + unit4, kDiffStride, src + input4, kSrcStride, acc);
  }
  float* const out =
      step.weight_partials + static_cast<std::int64_t>(blockIdx.y) * step.hidden * step.inputs;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int unit = unit4 + i, k = begin + input4 + j;
      if (unit < step.hidden && k < step.inputs) out[unit * step.inputs + k] = acc[i][j];
    }
  }
}

__global__ void __launch_bounds__(kSumThreads)
    mlp_sums(PartialSums weights, PartialSums small, LossTotals loss) {
  const int block = static_cast<int>(blockIdx.x);
  const int weight_blocks = sum_blocks(weights), small_blocks = sum_blocks(small);
  if (block < weight_blocks) {
    add_partials(weights, block);
  } else if (block < weight_blocks + small_blocks) {
    add_partials(small, block - weight_blocks);
  } else if (threadIdx.x < 32) {
    finish_loss(loss);
  }
}

template <typename T, int kUnits>
void launch_both(const MlpStep& step, const MlpGeneralPlan& plan, Stream stream) {
  constexpr int kInputs = Blocking<kUnits>::others;
  mlp_forward<T, kUnits><<<static_cast<unsigned>(plan.forward_blocks), kThreads, 0, stream>>>(step);
  check_launch("mlp_forward");
  const dim3 grid(static_cast<unsigned>((step.inputs + kInputs - 1) / kInputs),
                  static_cast<unsigned>(plan.slices));
  mlp_first_weights<T, kUnits><<<grid, kThreads, 0, stream>>>(step, plan);
  check_launch("mlp_first_weights");
}

template <typename T>
void launch_for(const MlpStep& step, const MlpGeneralPlan& plan, Stream stream) {
  if (step.hidden <= 16) {
    launch_both<T, 16>(step, plan, stream);
  } else if (step.hidden <= 32) {
    launch_both<T, 32>(step, plan, stream);
  } else {
    launch_both<T, 64>(step, plan, stream);
  }
}

int tile_of(int hidden) {
  return hidden <= 16 ? Blocking<16>::others
                      : (hidden <= 32 ? Blocking<32>::others : Blocking<64>::others);
}

}  // namespace

MlpGeneralPlan plan_mlp_general(const MlpStep& step, int multiprocessors) {
  constexpr std::int64_t kBlocksEach = 4;
  const std::int64_t wanted = kBlocksEach * multiprocessors;
  const int tile = tile_of(step.hidden);
  const std::int64_t tiles = (step.rows + tile - 1) / tile;
  const std::int64_t columns = (step.inputs + tile - 1) / tile;
  // At least 64 rows to a slice: the partial sums must be read again.
  const std::int64_t most = (step.rows + 63) / 64;
  const std::int64_t several = (wanted + columns - 1) / columns;
  const std::int64_t slices = several < most ? several : most;
  MlpGeneralPlan plan;
  plan.forward_blocks = static_cast<int>(tiles < wanted ? tiles : wanted);
  plan.rows_of_slice = ((step.rows + slices - 1) / slices + kDepth - 1) / kDepth * kDepth;
  plan.slices = static_cast<int>((step.rows + plan.rows_of_slice - 1) / plan.rows_of_slice);
  return plan;
}

void launch_mlp_general(const MlpStep& step, const MlpGeneralPlan& plan, Stream stream) {
  if (step.pixels != nullptr) {
    launch_for<std::uint8_t>(step, plan, stream);
  } else {
    launch_for<float>(step, plan, stream);
  }
}

void launch_mlp_sums(const PartialSums& weights, const PartialSums& small, const LossTotals& loss,
                     Stream stream) {
  const int blocks = sum_blocks(weights) + sum_blocks(small) + 1;
  mlp_sums<<<static_cast<unsigned>(blocks), kSumThreads, 0, stream>>>(weights, small, loss);
  check_launch("mlp_sums");
}

}  // namespace ridgeline::cuda
