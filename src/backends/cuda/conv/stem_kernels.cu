#include "backends/cuda/conv/stem_kernels.h"
#include "backends/cuda/work_split.cuh"

namespace ridgeline::cuda::conv {
namespace {

constexpr int kThreads = 256;
using Element = std::uint16_t;

struct ImagesWork {
  StemImages task;
  std::uint32_t pixels;  // of dst
  Divider by_dst_w;
};

// A thread for each pixel of dst.
__global__ void __launch_bounds__(kThreads) stem_images(const __grid_constant__ ImagesWork work) {
  const std::uint32_t pixel = blockIdx.x * kThreads + threadIdx.x;
  if (pixel >= work.pixels) return;
  const StemImages& task = work.task;
  const Divider::Parts place = work.by_dst_w.split(pixel);
  const auto channels = static_cast<int>(task.src.width);
  const int each = kStemChannels / task.together;
  const int first = static_cast<int>(place.remainder) * task.together;
  const Element* const row =
      static_cast<const Element*>(task.src.data) + place.quotient * task.src_w * task.src.stride;
  Pack<Element, kStemChannels> wide;
#pragma unroll
  for (int i = 0; i < kStemChannels; ++i) {
    const int column = first + i / each, channel = i % each;
    wide.elements[i] = 0;
    if (channel < channels && column < task.src_w) {
      wide.elements[i] = row[column * task.src.stride + channel];
    }
  }
  store(static_cast<Element*>(task.dst) + std::int64_t{pixel} * kStemChannels, wide);
}

// Where element (tap, channel) of a narrow row lies in a wide one.
__device__ __forceinline__ int wide_place(const StemWeights& task, int tap, int channel) {
  const int shifted = tap - task.pad + task.wide_pad * task.together;  // not negative
  const int each = kStemChannels / task.together;
  return shifted / task.together * kStemChannels + shifted % task.together * each + channel;
}

// A block for each row.
__global__ void __launch_bounds__(kThreads) stem_weights(const __grid_constant__ StemWeights task) {
  const int width = task.wide_taps * kStemChannels, narrow = task.taps * task.channels;
  Element* const to = static_cast<Element*>(task.dst) + std::int64_t{blockIdx.x} * width;
  const Element* const from =
      static_cast<const Element*>(task.src) + std::int64_t{blockIdx.x} * narrow;
  for (int i = static_cast<int>(threadIdx.x); i < width; i += kThreads) to[i] = 0;
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < narrow; i += kThreads) {
    to[wide_place(task, i / task.channels, i % task.channels)] = from[i];
  }
}

__global__ void __launch_bounds__(kThreads)
    stem_weights_gradient(const __grid_constant__ StemWeights task) {
  const int width = task.wide_taps * kStemChannels, narrow = task.taps * task.channels;
  Element* const to = static_cast<Element*>(task.dst) + std::int64_t{blockIdx.x} * narrow;
  const Element* const from =
      static_cast<const Element*>(task.src) + std::int64_t{blockIdx.x} * width;
  for (int i = static_cast<int>(threadIdx.x); i < narrow; i += kThreads) {
    to[i] = from[wide_place(task, i / task.channels, i % task.channels)];
  }
}

}  // namespace

void launch_stem_images(const StemImages& task, Stream stream) {
  const std::int64_t pixels = task.src.rows / task.src_w * task.dst_w;
  const ImagesWork work = {task, static_cast<std::uint32_t>(pixels), Divider(task.dst_w)};
  stem_images<<<static_cast<unsigned>(ceil_div(pixels, kThreads)), kThreads, 0, stream>>>(work);
  check_launch("stem_images");
}

void launch_stem_weights(const StemWeights& task, Stream stream) {
  stem_weights<<<static_cast<unsigned>(task.rows), kThreads, 0, stream>>>(task);
  check_launch("stem_weights");
}

void launch_stem_weights_gradient(const StemWeights& task, Stream stream) {
  stem_weights_gradient<<<static_cast<unsigned>(task.rows), kThreads, 0, stream>>>(task);
  check_launch("stem_weights_gradient");
}

}  // namespace ridgeline::cuda::conv
