#include <cstddef>

#include "backends/cuda/elementwise/elementwise.cuh"
#include "backends/cuda/sums/image_sums_kernels.h"
#include "backends/cuda/sums/lane_sums.cuh"
#include "backends/cuda/sums/sum_parts.h"

namespace ridgeline::cuda {
namespace {

constexpr int kThreads = 256;

// How the pixels of an image are shared: a block has some channels of one image, or a part of its
// pixels where images alone would leave multiprocessors idle.
struct ImageSplit {
  ChannelBlock block;
  int parts = 1;
};

ImageSplit split_for(std::int64_t samples, std::int64_t pixels, std::int64_t channels, int pack) {
  constexpr std::int64_t kBlocks = 4, kFewestRows = 8;  // of a multiprocessor; of a thread
  ImageSplit split;
  split.block = channel_block(channels / pack, kThreads, 32);
  const std::int64_t wanted = kBlocks * device_limits().multiprocessors;
  const std::int64_t most = std::max<std::int64_t>(1, pixels / (split.block.lanes * kFewestRows));
  split.parts =
      static_cast<int>(std::clamp<std::int64_t>(wanted / (samples * split.block.groups), 1, most));
  return split;
}

struct SumsWork {
  ImageSums task;
  ImageSplit split;
};

template <typename T, int pack, bool kOther>
__global__ __launch_bounds__(kThreads) void image_sums(const __grid_constant__ SumsWork work) {
  const ImageSums& task = work.task;
  const ChannelBlock& block = work.split.block;
  const int own_pack = static_cast<int>(threadIdx.x) % block.packs;
  const int lane = static_cast<int>(threadIdx.x) / block.packs;
  const int parts = work.split.parts, part = static_cast<int>(blockIdx.x) % parts;
  const int image = static_cast<int>(blockIdx.x) / parts, group = image % block.groups;
  const std::int64_t sample = image / block.groups;
  const int channel = (group * block.packs + own_pack) * pack;
  const bool active = lane < block.lanes && channel < task.src.width;
  float sums[pack] = {};
  if (active) {
    const std::int64_t first = sample * task.pixels;
    const T* const src = static_cast<const T*>(task.src.data) + channel;
    const T* const other = static_cast<const T*>(task.other.data) + channel;
#pragma unroll 4
    for (std::int64_t pixel = part * block.lanes + lane; pixel < task.pixels;
         pixel += parts * block.lanes) {
      const auto values = Packed<T, pack>::load(src + (first + pixel) * task.src.stride);
      Packed<T, pack> factors;
      if constexpr (kOther) {
        factors = Packed<T, pack>::load(other + (first + pixel) * task.other.stride);
      }
#pragma unroll
      for (int i = 0; i < pack; ++i) {
        sums[i] = kOther ? fmaf(values.get(i), factors.get(i), sums[i]) : sums[i] + values.get(i);
      }
    }
  }
  add_lanes<kThreads>(block, lane, sums);
  if (lane != 0 || !active) return;
  if (parts > 1) {
    float* const to = task.workspace + (part * task.samples + sample) * task.src.width + channel;
#pragma unroll
    for (int i = 0; i < pack; ++i) to[i] = sums[i];
    return;
  }
#pragma unroll
  for (int i = 0; i < pack; ++i) sums[i] /= task.divisor;
  Packed<T, pack>::of(sums).store(static_cast<T*>(task.dst.data) + sample * task.dst.stride +
                                  channel);
}

template <typename T, int pack>
void start(const ImageSums& task, Stream stream) {
  const SumsWork work = {task, split_for(task.samples, task.pixels, task.src.width, pack)};
  const int parts = work.split.parts;
  const auto blocks = static_cast<unsigned>(task.samples * work.split.block.groups * parts);
  if (task.other.data != nullptr) {
    image_sums<T, pack, true><<<blocks, kThreads, 0, stream>>>(work);
  } else {
    image_sums<T, pack, false><<<blocks, kThreads, 0, stream>>>(work);
  }
  check_launch("image_sums");
  if (parts > 1) {
    launch_sum_parts({task.workspace, parts, task.dst, task.dtype, task.divisor}, stream);
  }
}

}  // namespace

std::size_t image_sums_bytes(DType dtype, std::int64_t samples, std::int64_t pixels,
                             std::int64_t channels) {
  std::int64_t parts = 1;
  for (const int pack : {1, 16 / static_cast<int>(size_of(dtype))}) {
    if (channels % pack != 0) continue;
    parts = std::max<std::int64_t>(parts, split_for(samples, pixels, channels, pack).parts);
  }
  if (parts == 1) return 0;
  return static_cast<std::size_t>(parts * samples * channels) * sizeof(float);
}

void launch_image_sums(const ImageSums& task, Stream stream) {
  if (task.samples == 0 || task.pixels == 0 || task.src.width == 0) return;
  with_element_type(task.dtype, [&](auto type) {
    using T = decltype(type);
    if (pack_for(task.dtype, {task.src, task.other, task.dst}) == 1) {
      start<T, 1>(task, stream);
    } else {
      start<T, kFullPack<T>>(task, stream);
    }
  });
}

}  // namespace ridgeline::cuda
