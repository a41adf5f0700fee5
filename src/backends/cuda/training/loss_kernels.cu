#include "backends/cuda/training/loss_kernels.h"
#include "backends/cuda/work_split.cuh"

namespace ridgeline::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kMostBlocks = 1024;

// What a block's rows add up to.
struct BlockSums {
  double loss;
  std::int32_t top1, top5;
};

__device__ __forceinline__ float read(const LossMatrix& matrix, std::int64_t at) {
  switch (matrix.dtype) {
    case DType::bf16:
      return to_float(static_cast<const bf16*>(matrix.data)[at]);
    case DType::f16:
      return to_float(static_cast<const f16*>(matrix.data)[at]);
    default:
      return static_cast<const float*>(matrix.data)[at];
  }
}

__device__ __forceinline__ void write(const LossMatrix& matrix, std::int64_t at, float value) {
  switch (matrix.dtype) {
    case DType::bf16:
      static_cast<bf16*>(matrix.data)[at] = from_float<bf16>(value);
      return;
    case DType::f16:
      static_cast<f16*>(matrix.data)[at] = from_float<f16>(value);
      return;
    default:
      static_cast<float*>(matrix.data)[at] = value;
  }
}

__device__ __forceinline__ std::int64_t valid_rows(const LossTask& task, const StepState& state) {
  return state.valid_rows < task.rows ? state.valid_rows : task.rows;
}

// diff_logits = (probabilities - targets) * scale.
struct Gradient {
  float share, of_label, scale;
};

__device__ __forceinline__ Gradient gradient_of(const LossTask& task, const StepState& state,
                                                std::int64_t valid) {
  Gradient gradient{};
  gradient.share = static_cast<float>(task.smoothing / static_cast<double>(task.classes));
  gradient.of_label = static_cast<float>(1.0 - task.smoothing);
  if (valid > 0) {
    const double scale = state.loss_scale * task.diff_weight;
    gradient.scale = static_cast<float>(scale / static_cast<double>(valid));
  }
  return gradient;
}

__device__ __forceinline__ void write_diff(const LossTask& task, const Gradient& gradient,
                                           std::int64_t row, std::int64_t k, float probability,
                                           bool counts, bool is_label) {
  float diff = 0.0F;
  if (counts) {
    const float target = is_label ? gradient.share + gradient.of_label : gradient.share;
    diff = (probability - target) * gradient.scale;
  }
  if (task.diff_logits.data != nullptr) {
    write(task.diff_logits, row * task.diff_logits.stride + k, diff);
  }
  if (task.cast_diff_logits.data != nullptr) {
    write(task.cast_diff_logits, row * task.cast_diff_logits.stride + k, diff);
  }
}

// Sums and maxima over the `lanes` neighbours that share a row; all get the result.
template <int lanes>
__device__ __forceinline__ float group_sum(float value) {
  for (int offset = lanes / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xFFFFFFFFU, value, offset);
  }
  return value;
}
template <int lanes>
__device__ __forceinline__ int group_sum(int value) {
  for (int offset = lanes / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xFFFFFFFFU, value, offset);
  }
  return value;
}
template <int lanes>
__device__ __forceinline__ float group_max(float value) {
  for (int offset = lanes / 2; offset > 0; offset /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xFFFFFFFFU, value, offset));
  }
  return value;
}

// A row's logits, and then their powers, in the hands of `lanes` threads: `count` each, kept in
// registers, or any number, computed again whenever they are needed.
template <int lanes, int count>
class RowValues {
 public:
  __device__ __forceinline__ RowValues(const LossTask& task, std::int64_t row, int lane)
      : lane_(lane), classes_(static_cast<int>(task.classes)) {
    each_place([&](int i, int k) { values_[i] = read(task.logits, row * task.logits.stride + k); });
  }
  // Call body(k, value) for this thread's classes: first logits, then, once, powers are made.
  template <typename Body>
  __device__ __forceinline__ void each_logit(const Body& body) const {
    each_place([&](int i, int k) { body(k, values_[i]); });
  }
  __device__ __forceinline__ void make_powers(float largest) {
    each_place([&](int i, int) { values_[i] = expf(values_[i] - largest); });
  }
  template <typename Body>
  __device__ __forceinline__ void each_power(const Body& body) const {
    each_logit(body);
  }

 private:
  template <typename Body>
  __device__ __forceinline__ void each_place(const Body& body) const {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const int k = lane_ + i * lanes;
      if (k < classes_) body(i, k);
    }
  }

  int lane_, classes_;
  float values_[count] = {};
};

template <int lanes>
class RowValues<lanes, 0> {
 public:
  __device__ __forceinline__ RowValues(const LossTask& task, std::int64_t row, int lane)
      : task_(task), row_(row), lane_(lane) {}
  template <typename Body>
  __device__ __forceinline__ void each_logit(const Body& body) const {
    for (int k = lane_; k < task_.classes; k += lanes) {
      body(k, read(task_.logits, row_ * task_.logits.stride + k));
    }
  }
  __device__ __forceinline__ void make_powers(float largest) { largest_ = largest; }
  template <typename Body>
  __device__ __forceinline__ void each_power(const Body& body) const {
    each_logit([&](int k, float x) { body(k, expf(x - largest_)); });
  }

 private:
  const LossTask& task_;
  std::int64_t row_;
  int lane_;
  float largest_ = 0.0F;
};

// The loss of one row, and how many logits come before the label's: greater ones, and equal ones of
// a lower index; a NaN is never beaten. All lanes call this; a label that is no class makes a NaN.
struct RowResult {
  double loss;
  int rank;
};

template <int lanes, int count>
__device__ __forceinline__ RowResult loss_row(const LossTask& task, const Gradient& gradient,
                                              std::int64_t row, int lane, bool exists,
                                              bool counts) {
  // Groups beyond the last row go along with it, because all lanes of a warp exchange numbers.
  const std::int64_t readable = exists ? row : task.rows - 1;
  RowValues<lanes, count> values(task, readable, lane);
  const int label = counts ? task.labels[row] : 0;
  const bool known = label >= 0 && label < task.classes;
  const float own = read(task.logits, readable * task.logits.stride + (known ? label : 0));

  float largest = -INFINITY, logit_sum = 0.0F;
  int rank = 0;
  values.each_logit([&](int k, float x) {
    largest = fmaxf(largest, x);
    logit_sum += x;
    const bool beaten = k < label ? own > x : own >= x;
    rank += k != label && !beaten ? 1 : 0;
  });
  largest = group_max<lanes>(largest);
  logit_sum = group_sum<lanes>(logit_sum);
  rank = group_sum<lanes>(rank);

  float sum = 0.0F;
  values.make_powers(largest);
  values.each_power([&](int, float power) { sum += power; });
  sum = group_sum<lanes>(sum);

  if (exists) {
    const float inverse = 1.0F / sum;
    values.each_power([&](int k, float power) {
      const float probability = power * inverse;
      if (task.probabilities.data != nullptr) {
        write(task.probabilities, row * task.probabilities.stride + k, probability);
      }
      write_diff(task, gradient, row, k, probability, counts, k == label);
    });
  }
  if (!counts) return {0.0, 0};
  const double log_sum = static_cast<double>(largest) + log(static_cast<double>(sum));
  double loss = (1.0 - task.smoothing) * (log_sum - static_cast<double>(own));
  if (task.smoothing > 0.0) {
    const double mean = static_cast<double>(logit_sum) / static_cast<double>(task.classes);
    loss += task.smoothing * (log_sum - mean);
  }
  return {known ? loss : static_cast<double>(NAN), rank};
}

// One group of lanes to a row.
template <int lanes, int count>
__global__ __launch_bounds__(kThreads) void loss_rows(LossTask task, const StepState* state,
                                                      BlockSums* sums) {
  constexpr int kGroups = kThreads / lanes;
  __shared__ double losses[kGroups];
  __shared__ int counts[2][kGroups];
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int group = static_cast<int>(threadIdx.x) / lanes;
  const std::int64_t valid = valid_rows(task, *state);
  const Gradient gradient = gradient_of(task, *state, valid);
  double loss = 0.0;
  int top1 = 0, top5 = 0;
  // All groups of a block take part in every round.
  for (std::int64_t first = std::int64_t{blockIdx.x} * kGroups; first < task.rows;
       first += std::int64_t{gridDim.x} * kGroups) {
    const std::int64_t row = first + group;
    const bool is_valid = row < valid;
    const RowResult result =
        loss_row<lanes, count>(task, gradient, row, lane, row < task.rows, is_valid);
    loss += result.loss;
    top1 += is_valid && result.rank < 1 ? 1 : 0;
    top5 += is_valid && result.rank < 5 ? 1 : 0;
  }
  if (lane == 0) {
    losses[group] = loss;
    counts[0][group] = top1;
    counts[1][group] = top5;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int other = 1; other < kGroups; ++other) {
    loss += losses[other];
    top1 += counts[0][other];
    top5 += counts[1][other];
  }
  sums[blockIdx.x] = {loss, top1, top5};
}

// The blocks' sums in order: each thread adds some, then one adds the threads'.
__global__ __launch_bounds__(kThreads) void finish_loss(LossTask task, const StepState* state,
                                                        const BlockSums* sums, int blocks) {
  __shared__ double losses[kThreads];
  __shared__ double counts[2][kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  double total = 0.0, top1 = 0.0, top5 = 0.0;
  for (int block = thread; block < blocks; block += kThreads) {
    total += sums[block].loss;
    top1 += sums[block].top1;
    top5 += sums[block].top5;
  }
  losses[thread] = total;
  counts[0][thread] = top1;
  counts[1][thread] = top5;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (thread < half) {
      losses[thread] += losses[thread + half];
      counts[0][thread] += counts[0][thread + half];
      counts[1][thread] += counts[1][thread + half];
    }
  }
  if (thread != 0) return;
  const auto valid = static_cast<double>(valid_rows(task, *state));
  const float mean = valid > 0.0 ? static_cast<float>(losses[0] * task.weight / valid) : 0.0F;
  if (task.loss != nullptr) *task.loss = mean;
  if (task.new_totals == nullptr) return;
  const float counted = task.given_loss != nullptr ? *task.given_loss : mean;
  task.new_totals[0] = task.totals[0] + static_cast<double>(counted) * valid;
  task.new_totals[1] = task.totals[1] + counts[0][0];
  task.new_totals[2] = task.totals[2] + counts[1][0];
  task.new_totals[3] = task.totals[3] + valid;
}

template <int lanes>
__global__ __launch_bounds__(kThreads) void loss_backward(LossTask task, const StepState* state) {
  constexpr int kGroups = kThreads / lanes;
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int group = static_cast<int>(threadIdx.x) / lanes;
  const std::int64_t valid = valid_rows(task, *state);
  const Gradient gradient = gradient_of(task, *state, valid);
  for (std::int64_t row = std::int64_t{blockIdx.x} * kGroups + group; row < task.rows;
       row += std::int64_t{gridDim.x} * kGroups) {
    const bool counts = row < valid;
    const int label = counts ? task.labels[row] : 0;
    for (int k = lane; k < task.classes; k += lanes) {
      const float probability = read(task.probabilities, row * task.probabilities.stride + k);
      write_diff(task, gradient, row, k, probability, counts, k == label);
    }
  }
}

int blocks_for(std::int64_t rows, int groups) {
  return static_cast<int>(std::clamp<std::int64_t>(ceil_div(rows, groups), 1, kMostBlocks));
}

template <int lanes, int count>
int launch_rows(const LossTask& task, const StepState* state, BlockSums* sums, Stream stream) {
  const int blocks = blocks_for(task.rows, kThreads / lanes);
  loss_rows<lanes, count><<<blocks, kThreads, 0, stream>>>(task, state, sums);
  check_launch("loss_rows");
  return blocks;
}

}  // namespace

std::int64_t loss_workspace_bytes() {
  return kMostBlocks * static_cast<std::int64_t>(sizeof(BlockSums));
}

void launch_loss(const LossTask& task, const StepState* state, void* workspace, Stream stream) {
  auto* const sums = static_cast<BlockSums*>(workspace);
  int blocks = 0;
  if (task.classes <= 16) {
    blocks = launch_rows<8, 2>(task, state, sums, stream);
  } else if (task.classes <= 128) {
    blocks = launch_rows<32, 4>(task, state, sums, stream);
  } else if (task.classes <= 1024) {
    blocks = launch_rows<32, 32>(task, state, sums, stream);
  } else {
    blocks = launch_rows<32, 0>(task, state, sums, stream);
  }
  if (task.loss == nullptr && task.new_totals == nullptr) return;
  finish_loss<<<1, kThreads, 0, stream>>>(task, state, sums, blocks);
  check_launch("finish_loss");
}

void launch_loss_backward(const LossTask& task, const StepState* state, Stream stream) {
  if (task.classes <= 16) {
    const int blocks = blocks_for(task.rows, kThreads / 8);
    loss_backward<8><<<blocks, kThreads, 0, stream>>>(task, state);
  } else {
    const int blocks = blocks_for(task.rows, kThreads / 32);
    loss_backward<32><<<blocks, kThreads, 0, stream>>>(task, state);
  }
  check_launch("loss_backward");
}

}  // namespace ridgeline::cuda
