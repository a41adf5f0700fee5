#include "backends/cuda/device.cuh"
#include "backends/cuda/training/gradients_kernels.h"

namespace ridgeline::cuda {
namespace {

constexpr int kThreads = 256;
// Blocks for each tensor: enough to keep memory busy when there is one.
constexpr std::int64_t kMostBlocks = 264;

struct Tensors {
  GradientTensor all[kGradientTensors];
};
static_assert(sizeof(Tensors) <= 4000);

__device__ __forceinline__ float read(const GradientTensor& tensor, std::int64_t i) {
  switch (tensor.dtype) {
    case DType::bf16:
      return to_float(static_cast<const bf16*>(tensor.src)[i]);
    case DType::f16:
      return to_float(static_cast<const f16*>(tensor.src)[i]);
    default:
      return static_cast<const float*>(tensor.src)[i];
  }
}

__device__ __forceinline__ void write(const GradientTensor& tensor, std::int64_t i, float value) {
  switch (tensor.dtype) {
    case DType::bf16:
      static_cast<bf16*>(tensor.dst)[i] = from_float<bf16>(value);
      return;
    case DType::f16:
      static_cast<f16*>(tensor.dst)[i] = from_float<f16>(value);
      return;
    default:
      static_cast<float*>(tensor.dst)[i] = value;
  }
}

// Calls body(i) for the elements of this block's tensor that fall to this thread.
template <typename Body>
__device__ __forceinline__ void for_elements(const GradientTensor& tensor, Body body) {
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < tensor.elements;
       i += step) {
    body(i);
  }
}

__global__ void __launch_bounds__(kThreads)
    accumulate_kernel(const __grid_constant__ Tensors tensors) {
  const GradientTensor& tensor = tensors.all[blockIdx.y];
  for_elements(tensor, [&](std::int64_t i) {
    const float before = tensor.sum != nullptr ? tensor.sum[i] : 0.0F;
    static_cast<float*>(tensor.dst)[i] = before + read(tensor, i);
  });
}

// The sum over all threads of a block, for the first one.
__device__ double sum_of_block(double value, double* shared) {
  shared[threadIdx.x] = value;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < half) shared[threadIdx.x] += shared[threadIdx.x + half];
  }
  return shared[0];
}

__global__ void __launch_bounds__(kThreads)
    squares_kernel(const __grid_constant__ Tensors tensors, double* parts) {
  __shared__ double shared[kThreads];
  const GradientTensor& tensor = tensors.all[blockIdx.y];
  double sum = 0.0;
  for_elements(tensor, [&](std::int64_t i) {
    const double value = read(tensor, i);
    sum += value * value;
  });
  sum = sum_of_block(sum, shared);
  if (threadIdx.x == 0) parts[blockIdx.y * kSquareParts + blockIdx.x] = sum;
}

__global__ void __launch_bounds__(kThreads)
    clip_factor_kernel(const double* parts, int count, double largest, const StepState* state,
                       float* factor) {
  constexpr double kPyTorchEpsilon = 1e-6;
  __shared__ double shared[kThreads];
  double sum = 0.0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) sum += parts[i];
  sum = sum_of_block(sum, shared);
  if (threadIdx.x != 0) return;
  const double norm = sqrt(sum) / state->gradient_scale;
  const double wanted = largest / (norm + kPyTorchEpsilon);
  *factor = isfinite(norm) && wanted < 1.0 ? static_cast<float>(wanted) : 1.0F;
}

__global__ void __launch_bounds__(kThreads)
    shrink_kernel(const __grid_constant__ Tensors tensors, const float* factor) {
  const GradientTensor& tensor = tensors.all[blockIdx.y];
  const float by = *factor;
  if (by == 1.0F && tensor.src == tensor.dst) return;
  for_elements(tensor, [&](std::int64_t i) { write(tensor, i, read(tensor, i) * by); });
}

Tensors table_of(const GradientTensor* tensors, int count) {
  Tensors all;
  for (int i = 0; i < count; ++i) all.all[i] = tensors[i];
  return all;
}

// One row of blocks for each tensor, as long as the largest wants it.
dim3 grid_of(const GradientTensor* tensors, int count) {
  std::int64_t blocks = 1;
  for (int i = 0; i < count; ++i) {
    const std::int64_t wanted = (tensors[i].elements + kThreads - 1) / kThreads;
    if (wanted > blocks) blocks = wanted;
  }
  return {static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks),
          static_cast<unsigned>(count)};
}

}  // namespace

void launch_accumulate(const GradientTensor* tensors, int count, Stream stream) {
  accumulate_kernel<<<grid_of(tensors, count), kThreads, 0, stream>>>(table_of(tensors, count));
  check_launch("accumulate");
}

void launch_squares(const GradientTensor* tensors, int count, double* parts, Stream stream) {
  const dim3 grid(kSquareParts, static_cast<unsigned>(count));
  squares_kernel<<<grid, kThreads, 0, stream>>>(table_of(tensors, count), parts);
  check_launch("squares");
}

void launch_clip_factor(const double* parts, int count, double largest, const StepState* state,
                        float* factor, Stream stream) {
  clip_factor_kernel<<<1, kThreads, 0, stream>>>(parts, count, largest, state, factor);
  check_launch("clip_factor");
}

void launch_shrink(const GradientTensor* tensors, int count, const float* factor, Stream stream) {
  shrink_kernel<<<grid_of(tensors, count), kThreads, 0, stream>>>(table_of(tensors, count), factor);
  check_launch("shrink");
}

}  // namespace ridgeline::cuda
