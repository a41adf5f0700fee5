#include "backends/cuda/sums/sum_parts.h"
#include "backends/cuda/work_split.cuh"

namespace ridgeline::cuda {
namespace {

constexpr int kThreads = 512;
constexpr int kWarps = kThreads / 32;

// Each column is summed by kThreads / columns threads; their sums meet within warps, then between
// them. Many parts want few columns to a block, so that no thread adds up a long list alone.
template <typename T, int columns>
__global__ __launch_bounds__(kThreads) void sum_parts(const float* parts, int count,
                                                      std::int64_t width, T* dst) {
  constexpr int kShares = kThreads / columns;
  __shared__ float of_warps[kWarps][columns];
  const int column = static_cast<int>(threadIdx.x) % columns;
  const int share = static_cast<int>(threadIdx.x) / columns;
  const std::int64_t at = std::int64_t{blockIdx.x} * columns + column;
  float sum = 0.0F;
  if (at < width) {
#pragma unroll 8
    for (int part = share; part < count; part += kShares) sum += parts[part * width + at];
  }
  for (int offset = 16; offset >= columns; offset /= 2) {
    sum += __shfl_xor_sync(0xFFFFFFFFU, sum, offset);
  }
  if (threadIdx.x % 32 < columns) of_warps[threadIdx.x / 32][column] = sum;
  __syncthreads();
  if (share != 0 || at >= width) return;
  for (int warp = 1; warp < kWarps; ++warp) sum += of_warps[warp][column];
  dst[at] = from_float<T>(sum);
}

template <typename T, int columns>
void launch_columns(const float* parts, int count, std::int64_t width, void* dst, Stream stream) {
  const auto blocks = static_cast<unsigned>(ceil_div(width, columns));
  T* const to = static_cast<T*>(dst);
  sum_parts<T, columns><<<blocks, kThreads, 0, stream>>>(parts, count, width, to);
  check_launch("sum_parts");
}

template <typename T>
void launch(const float* parts, int count, std::int64_t width, void* dst, Stream stream) {
  if (count > 64) return launch_columns<T, 8>(parts, count, width, dst, stream);
  launch_columns<T, 32>(parts, count, width, dst, stream);
}

}  // namespace

void launch_sum_parts(const float* parts, int count, std::int64_t width, void* dst, DType dst_type,
                      Stream stream) {
  if (dst_type == DType::bf16) return launch<bf16>(parts, count, width, dst, stream);
  if (dst_type == DType::f16) return launch<f16>(parts, count, width, dst, stream);
  launch<float>(parts, count, width, dst, stream);
}

}  // namespace ridgeline::cuda
