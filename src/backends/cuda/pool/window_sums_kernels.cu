#include "backends/cuda/elementwise/elementwise.cuh"
#include "backends/cuda/pool/window_sums_kernels.h"
#include "backends/cuda/work_split.cuh"

namespace ridgeline::cuda {
namespace {

constexpr int kThreads = 256;

struct SumsWork {
  WindowSums task;
  std::uint32_t items;  // packs of dst
  Divider packs, columns, rows;
};

// Pixels [begin, end) along an axis.
struct Span {
  std::int64_t begin, end;

  [[nodiscard]] __device__ __forceinline__ float size() const {
    return static_cast<float>(end - begin);
  }
};

// The pixels of `src` that touch pixel `at` of `dst` when both axes are drawn equally long.
__device__ __forceinline__ Span touching(std::int64_t at, std::int64_t src, std::int64_t dst) {
  return {at * src / dst, ((at + 1) * src + dst - 1) / dst};
}

// The pixels of src that begin in pixel `at` of dst.
__device__ __forceinline__ Span beginning(std::int64_t at, std::int64_t src, std::int64_t dst) {
  return {(at * src + dst - 1) / dst, ((at + 1) * src + dst - 1) / dst};
}

template <WindowRule kRule>
__device__ __forceinline__ Span span_of(std::int64_t at, std::int64_t src, std::int64_t dst) {
  if constexpr (kRule == WindowRule::resize_backward) return beginning(at, src, dst);
  return touching(at, src, dst);
}

// A thread to a pack of a dst pixel.
template <typename T, int pack, WindowRule kRule>
__global__ __launch_bounds__(kThreads) void window_sums(const __grid_constant__ SumsWork work) {
  const std::uint32_t item = blockIdx.x * kThreads + threadIdx.x;
  if (item >= work.items) return;
  const WindowSums& task = work.task;
  const Divider::Parts of_pixel = work.packs.split(item);
  const Divider::Parts of_row = work.columns.split(of_pixel.quotient);
  const Divider::Parts of_sample = work.rows.split(of_row.quotient);
  const std::int64_t channel = std::int64_t{of_pixel.remainder} * pack;
  const Span rows = span_of<kRule>(of_sample.remainder, task.src_h, task.dst_h);
  const Span columns = span_of<kRule>(of_row.remainder, task.src_w, task.dst_w);
  const T* const sample = static_cast<const T*>(task.src.data) +
                          of_sample.quotient * task.src_h * task.src_w * task.src.stride + channel;
  float sums[pack] = {};
  for (std::int64_t h = rows.begin; h < rows.end; ++h) {
    for (std::int64_t w = columns.begin; w < columns.end; ++w) {
      float divisor = 1.0F;
      if constexpr (kRule == WindowRule::average_backward) {
        divisor =
            touching(h, task.dst_h, task.src_h).size() * touching(w, task.dst_w, task.src_w).size();
      }
      const auto values = Packed<T, pack>::load(sample + (h * task.src_w + w) * task.src.stride);
#pragma unroll
      for (int i = 0; i < pack; ++i) sums[i] += values.get(i) / divisor;
    }
  }
  if constexpr (kRule == WindowRule::average) {
    const float pixels = rows.size() * columns.size();
#pragma unroll
    for (int i = 0; i < pack; ++i) sums[i] /= pixels;
  }
  Packed<T, pack>::of(sums).store(static_cast<T*>(task.dst.data) +
                                  of_pixel.quotient * task.dst.stride + channel);
}

template <typename T, int pack>
void start(const WindowSums& task, Stream stream) {
  SumsWork work{};
  work.task = task;
  work.packs = Divider(task.dst.width / pack);
  work.columns = Divider(task.dst_w);
  work.rows = Divider(task.dst_h);
  const std::int64_t items = task.dst.rows * (task.dst.width / pack);
  work.items = static_cast<std::uint32_t>(items);
  const auto blocks = static_cast<unsigned>(ceil_div(items, kThreads));
  switch (task.rule) {
    case WindowRule::average:
      window_sums<T, pack, WindowRule::average><<<blocks, kThreads, 0, stream>>>(work);
      break;
    case WindowRule::average_backward:
      window_sums<T, pack, WindowRule::average_backward><<<blocks, kThreads, 0, stream>>>(work);
      break;
    case WindowRule::resize_backward:
      window_sums<T, pack, WindowRule::resize_backward><<<blocks, kThreads, 0, stream>>>(work);
      break;
  }
  check_launch("window_sums");
}

}  // namespace

void launch_window_sums(const WindowSums& task, Stream stream) {
  if (task.dst.rows == 0 || task.dst.width == 0) return;
  with_element_type(task.dtype, [&](auto type) {
    using T = decltype(type);
    if (pack_for(task.dtype, {task.src, task.dst}) == 1) {
      start<T, 1>(task, stream);
    } else {
      start<T, kFullPack<T>>(task, stream);
    }
  });
}

}  // namespace ridgeline::cuda
