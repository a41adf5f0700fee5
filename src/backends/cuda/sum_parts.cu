#include "backends/cuda/sum_parts.h"
#include "backends/cuda/work_split.cuh"

namespace ridgeline::cuda {
namespace {

constexpr int kColumns = 32, kShares = 16;

// Each column is summed by kShares threads, and their shares by one.
template <typename T>
__global__ __launch_bounds__(kColumns* kShares) void sum_parts(const float* parts, int count,
                                                               std::int64_t width, T* dst) {
  __shared__ float shares[kShares][kColumns];
  const int column = static_cast<int>(threadIdx.x) % kColumns;
  const int share = static_cast<int>(threadIdx.x) / kColumns;
  const std::int64_t at = std::int64_t{blockIdx.x} * kColumns + column;
  float sum = 0.0F;
  if (at < width) {
#pragma unroll 4
    for (int part = share; part < count; part += kShares) sum += parts[part * width + at];
  }
  shares[share][column] = sum;
  __syncthreads();
  if (share != 0 || at >= width) return;
  for (int other = 1; other < kShares; ++other) sum += shares[other][column];
  dst[at] = from_float<T>(sum);
}

template <typename T>
void launch(const float* parts, int count, std::int64_t width, void* dst, Stream stream) {
  const auto blocks = static_cast<unsigned>(ceil_div(width, kColumns));
  sum_parts<T>
      <<<blocks, kColumns * kShares, 0, stream>>>(parts, count, width, static_cast<T*>(dst));
  check_launch("sum_parts");
}

}  // namespace

void launch_sum_parts(const float* parts, int count, std::int64_t width, void* dst, DType dst_type,
                      Stream stream) {
  if (dst_type == DType::bf16) return launch<bf16>(parts, count, width, dst, stream);
  if (dst_type == DType::f16) return launch<f16>(parts, count, width, dst, stream);
  launch<float>(parts, count, width, dst, stream);
}

}  // namespace ridgeline::cuda
