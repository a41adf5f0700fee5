#include "backends/cuda/sums/sum_parts.h"
#include "backends/cuda/work_split.cuh"

namespace ridgeline::cuda {
namespace {

constexpr int kThreads = 512;
constexpr int kWarps = kThreads / 32;

// Each column is summed by kThreads / columns threads; their sums meet within warps, then between
// them. Many parts want few columns to a block, so that no thread adds up a long list alone.
struct SumWork {
  const float* parts;
  int count;
  std::int64_t width;  // of a part
  void* dst;
  std::int64_t stride;
  Divider row_width;
  float divisor;
};

template <typename T, int columns>
__global__ __launch_bounds__(kThreads) void sum_parts(SumWork work) {
  constexpr int kShares = kThreads / columns;
  __shared__ float of_warps[kWarps][columns];
  const int column = static_cast<int>(threadIdx.x) % columns;
  const int share = static_cast<int>(threadIdx.x) / columns;
  const std::int64_t at = std::int64_t{blockIdx.x} * columns + column;
  float sum = 0.0F;
  if (at < work.width) {
#pragma unroll 8
    for (int part = share; part < work.count; part += kShares) {
      sum += work.parts[part * work.width + at];
    }
  }
  for (int offset = 16; offset >= columns; offset /= 2) {
    sum += __shfl_xor_sync(0xFFFFFFFFU, sum, offset);
  }
  if (threadIdx.x % 32 < columns) of_warps[threadIdx.x / 32][column] = sum;
  __syncthreads();
  if (share != 0 || at >= work.width) return;
  for (int warp = 1; warp < kWarps; ++warp) sum += of_warps[warp][column];
  const Divider::Parts row = work.row_width.split(static_cast<std::uint32_t>(at));
  static_cast<T*>(work.dst)[row.quotient * work.stride + row.remainder] =
      from_float<T>(sum / work.divisor);
}

template <typename T, int columns>
void launch_columns(const SumWork& work, Stream stream) {
  const auto blocks = static_cast<unsigned>(ceil_div(work.width, columns));
  sum_parts<T, columns><<<blocks, kThreads, 0, stream>>>(work);
  check_launch("sum_parts");
}

template <typename T>
void launch(const SumWork& work, Stream stream) {
  if (work.count > 64) return launch_columns<T, 8>(work, stream);
  launch_columns<T, 32>(work, stream);
}

}  // namespace

void launch_sum_parts(const SumRows& task, Stream stream) {
  const SumWork work = {task.parts,    task.count,      task.dst.rows * task.dst.width,
                        task.dst.data, task.dst.stride, Divider(task.dst.width),
                        task.divisor};
  if (task.dst_type == DType::bf16) return launch<bf16>(work, stream);
  if (task.dst_type == DType::f16) return launch<f16>(work, stream);
  launch<float>(work, stream);
}

void launch_sum_parts(const float* parts, int count, std::int64_t width, void* dst, DType dst_type,
                      Stream stream) {
  launch_sum_parts({parts, count, {dst, 1, width, width}, dst_type}, stream);
}

}  // namespace ridgeline::cuda
