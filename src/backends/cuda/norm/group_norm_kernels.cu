#include "backends/cuda/elementwise/elementwise.cuh"
#include "backends/cuda/norm/layer_norm_kernels.h"
#include "backends/cuda/sums/lane_sums.cuh"

namespace ridgeline::cuda {
namespace {

constexpr int kThreads = 512;

// The elements of one group of a sample, in packs; a block has one group.
template <typename T, int kPack>
struct GroupElements {
  std::int64_t first_row, first_channel;
  Divider packs;  // of a row of the group
  std::uint32_t count;

  // Calls visit(row, channel) for the packs of the thread.
  template <typename Visit>
  __device__ __forceinline__ void each(Visit visit) const {
    for (std::uint32_t pack = threadIdx.x; pack < count; pack += kThreads) {
      const Divider::Parts at = packs.split(pack);
      visit(first_row + at.quotient, first_channel + std::int64_t{at.remainder} * kPack);
    }
  }
};

template <typename T, int kPack>
__device__ __forceinline__ GroupElements<T, kPack> elements_of(std::int64_t groups,
                                                               std::int64_t pixels,
                                                               std::int64_t channels,
                                                               const Divider& packs) {
  const std::int64_t sample = blockIdx.x / groups, group = blockIdx.x - sample * groups;
  const std::int64_t width = channels / groups;
  return {sample * pixels, group * width, packs,
          static_cast<std::uint32_t>(pixels * (width / kPack))};
}

template <typename T, int kPack>
__device__ __forceinline__ Packed<T, kPack> load_at(const Rows& rows, std::int64_t row,
                                                    std::int64_t channel) {
  return Packed<T, kPack>::load(static_cast<const T*>(rows.data) + row * rows.stride + channel);
}

template <typename T, int kPack>
__device__ __forceinline__ void store_at(const Rows& rows, std::int64_t row, std::int64_t channel,
                                         const float (&values)[kPack]) {
  Packed<T, kPack>::of(values).store(static_cast<T*>(rows.data) + row * rows.stride + channel);
}

template <typename T, int kPack>
__global__ void __launch_bounds__(kThreads)
    group_norm_kernel(const __grid_constant__ LayerNorm task, const Divider packs) {
  __shared__ float shared[32];
  const auto elements = elements_of<T, kPack>(task.groups, task.pixels, task.src.width, packs);
  const auto count = static_cast<float>(elements.count) * kPack;
  float sum = 0.0F, squares = 0.0F;
  elements.each([&](std::int64_t row, std::int64_t channel) {
    const auto x = load_at<T, kPack>(task.src, row, channel);
#pragma unroll
    for (int i = 0; i < kPack; ++i) sum += x.get(i);
  });
  const float mean = block_sum(sum, shared) / count;
  elements.each([&](std::int64_t row, std::int64_t channel) {
    const auto x = load_at<T, kPack>(task.src, row, channel);
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      const float distance = x.get(i) - mean;
      squares = fmaf(distance, distance, squares);
    }
  });
  const float variance = block_sum(squares, shared) / count;
  const float inverse = 1.0F / sqrtf(variance + static_cast<float>(task.epsilon));
  if (threadIdx.x == 0) {
    if (task.mean != nullptr) task.mean[blockIdx.x] = mean;
    if (task.inverse != nullptr) task.inverse[blockIdx.x] = inverse;
  }
  if (task.dst.data == nullptr) return;
  elements.each([&](std::int64_t row, std::int64_t channel) {
    const auto x = load_at<T, kPack>(task.src, row, channel);
    float values[kPack];
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      values[i] =
          fmaf((x.get(i) - mean) * inverse, task.scale[channel + i], task.shift[channel + i]);
    }
    store_at<T, kPack>(task.dst, row, channel, values);
  });
}

template <typename T, int kPack>
__global__ void __launch_bounds__(kThreads)
    group_norm_backward_kernel(const __grid_constant__ LayerNormBackward task,
                               const Divider packs) {
  __shared__ float shared[32];
  const auto elements = elements_of<T, kPack>(task.groups, task.pixels, task.src.width, packs);
  const auto count = static_cast<float>(elements.count) * kPack;
  const float mean = task.mean[blockIdx.x], inverse = task.inverse[blockIdx.x];
  float sum = 0.0F, products = 0.0F;
  elements.each([&](std::int64_t row, std::int64_t channel) {
    const auto diff = load_at<T, kPack>(task.diff, row, channel);
    const auto x = load_at<T, kPack>(task.src, row, channel);
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      const float g = diff.get(i) * task.scale[channel + i];
      sum += g;
      products = fmaf(g, (x.get(i) - mean) * inverse, products);
    }
  });
  sum = block_sum(sum, shared) / count;
  products = block_sum(products, shared) / count;
  elements.each([&](std::int64_t row, std::int64_t channel) {
    const auto diff = load_at<T, kPack>(task.diff, row, channel);
    const auto x = load_at<T, kPack>(task.src, row, channel);
    float values[kPack];
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      const float g = diff.get(i) * task.scale[channel + i];
      values[i] = (g - fmaf((x.get(i) - mean) * inverse, products, sum)) * inverse;
    }
    store_at<T, kPack>(task.diff_src, row, channel, values);
  });
}

struct ColumnsWork {
  LayerNormBackward task;
  ChannelBlock block;
  Divider pixels, group_width;
};

// The sums over all rows for each channel: threads keep their channel and walk over rows.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    group_norm_columns_kernel(const __grid_constant__ ColumnsWork work) {
  const LayerNormBackward& task = work.task;
  const int lane = static_cast<int>(threadIdx.x) / work.block.packs;
  const int own = static_cast<int>(threadIdx.x) % work.block.packs;
  const int channel = static_cast<int>(blockIdx.y) * work.block.packs + own;
  const bool active = lane < work.block.lanes && channel < task.src.width;
  float sums[2] = {};
  if (active) {
    const std::uint32_t group = work.group_width.quotient(static_cast<std::uint32_t>(channel));
    for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * work.block.lanes + lane;
         row < task.src.rows; row += static_cast<std::int64_t>(gridDim.x) * work.block.lanes) {
      const std::int64_t sample = work.pixels.quotient(static_cast<std::uint32_t>(row));
      const std::int64_t at = sample * task.groups + group;
      const float diff = load_at<T, 1>(task.diff, row, channel).get(0);
      const float x = load_at<T, 1>(task.src, row, channel).get(0);
      sums[0] = fmaf(diff, (x - task.mean[at]) * task.inverse[at], sums[0]);
      sums[1] += diff;
    }
  }
  add_lanes<kThreads>(work.block, lane, sums);
  if (lane != 0 || !active) return;
  task.workspace[2 * blockIdx.x * task.src.width + channel] = sums[0];
  task.workspace[(2 * blockIdx.x + 1) * task.src.width + channel] = sums[1];
}

template <typename T>
void start_columns(const LayerNormBackward& task, Stream stream) {
  if (task.diff_scale == nullptr && task.diff_shift == nullptr) return;
  ColumnsWork work{};
  work.task = task;
  work.block = channel_block(task.src.width, kThreads, 64);
  work.pixels = Divider(task.pixels);
  work.group_width = Divider(task.src.width / task.groups);
  const std::int64_t most = 2 * std::int64_t{device_limits().multiprocessors};
  const std::int64_t wanted = std::max<std::int64_t>(1, most / work.block.groups);
  const std::int64_t parts = std::min(wanted, ceil_div(task.src.rows, work.block.lanes));
  const dim3 grid(static_cast<unsigned>(parts), static_cast<unsigned>(work.block.groups));
  group_norm_columns_kernel<T><<<grid, kThreads, 0, stream>>>(work);
  check_launch("group_norm_columns");
  add_norm_parts(task, static_cast<int>(parts), stream);
}

// Packs lie in one group.
int group_pack(DType dtype, std::initializer_list<Rows> operands, std::int64_t group_width) {
  const int pack = pack_for(dtype, operands);
  return group_width % pack == 0 ? pack : 1;
}

}  // namespace

void launch_group_norm(const LayerNorm& task, Stream stream) {
  const std::int64_t width = task.src.width / task.groups;
  const auto blocks = static_cast<unsigned>(task.src.rows / task.pixels * task.groups);
  with_element_type(task.dtype, [&](auto type) {
    using T = decltype(type);
    if (group_pack(task.dtype, {task.src, task.dst}, width) == 1) {
      group_norm_kernel<T, 1><<<blocks, kThreads, 0, stream>>>(task, Divider(width));
    } else {
      group_norm_kernel<T, kFullPack<T>>
          <<<blocks, kThreads, 0, stream>>>(task, Divider(width / kFullPack<T>));
    }
  });
  check_launch("group_norm");
}

void launch_group_norm_backward(const LayerNormBackward& task, Stream stream) {
  const std::int64_t width = task.src.width / task.groups;
  const auto blocks = static_cast<unsigned>(task.src.rows / task.pixels * task.groups);
  with_element_type(task.dtype, [&](auto type) {
    using T = decltype(type);
    if (task.diff_src.data != nullptr) {
      if (group_pack(task.dtype, {task.diff, task.src, task.diff_src}, width) == 1) {
        group_norm_backward_kernel<T, 1><<<blocks, kThreads, 0, stream>>>(task, Divider(width));
      } else {
        group_norm_backward_kernel<T, kFullPack<T>>
            <<<blocks, kThreads, 0, stream>>>(task, Divider(width / kFullPack<T>));
      }
      check_launch("group_norm_backward");
    }
    start_columns<T>(task, stream);
  });
}

}  // namespace ridgeline::cuda
