// Depthwise convolutions with windows of any form: a thread for each pack of pixels, or each pixel,
// and loops over the taps.

#include "backends/cuda/depthwise/depthwise_kernels.h"
#include "backends/cuda/sums/sum_parts.h"
#include "backends/cuda/work_split.cuh"

namespace ridgeline::cuda {
namespace {

constexpr int kThreads = 256;

struct AnyWork {
  DepthwiseTask task;
  std::uint32_t items;
  Divider packs, columns, rows;  // of the image that is written; of diff_dst for weights
  ChannelBlock block;            // for weights
};

// A thread's pixel and channels.
struct Spot {
  std::int64_t sample, pixel;
  int row, column, channel;
};

__device__ __forceinline__ Spot spot_at(const AnyWork& work, std::uint32_t pixel) {
  const Divider::Parts of_row = work.columns.split(pixel);
  const Divider::Parts of_sample = work.rows.split(of_row.quotient);
  return {of_sample.quotient, pixel, static_cast<int>(of_sample.remainder),
          static_cast<int>(of_row.remainder), 0};
}

// The src position under a tap; negative or too large on the padding.
__device__ __forceinline__ int under_tap(const DepthwiseAxis& axis, int dst, int tap) {
  return dst * axis.stride - axis.pad + tap * axis.dilation;
}

// The dst position whose tap reads a src position; -1 when none does.
__device__ __forceinline__ int reader_of(const DepthwiseAxis& axis, int src, int tap) {
  const int start = src + axis.pad - tap * axis.dilation;
  if (start < 0 || start % axis.stride != 0) return -1;
  const int dst = start / axis.stride;
  return dst < axis.dst ? dst : -1;
}

// One pixel of src, times the weights of one tap, for all channels of a pack.
template <typename T, int pack>
__device__ __forceinline__ void add_products(const Pack<T, pack>& pixel, const T* weights, int taps,
                                             float (&sums)[pack]) {
#pragma unroll
  for (int i = 0; i < pack; ++i) sums[i] += pixel.get(i) * to_float(weights[i * taps]);
}

template <typename T, int pack>
__device__ __forceinline__ Pack<T, pack> pixel_of(const Rows& image, std::int64_t sample,
                                                  const DepthwiseTask& task, bool is_src, int row,
                                                  int column, int channel) {
  const int height = is_src ? task.rows.src : task.rows.dst;
  const int width = is_src ? task.columns.src : task.columns.dst;
  const std::int64_t pixel = (sample * height + row) * width + column;
  return load<T, pack>(static_cast<const T*>(image.data) + pixel * image.stride + channel);
}

template <typename T, int pack>
__device__ __forceinline__ void store_sums(const float (&sums)[pack], const Rows& image,
                                           const Spot& spot) {
  Pack<T, pack> result;
#pragma unroll
  for (int i = 0; i < pack; ++i) result.set(i, sums[i]);
  store<T, pack>(static_cast<T*>(image.data) + spot.pixel * image.stride + spot.channel, result);
}

template <typename T, int pack>
__global__ __launch_bounds__(kThreads) void any_depthwise(AnyWork work) {
  const std::uint32_t item = blockIdx.x * kThreads + threadIdx.x;
  if (item >= work.items) return;
  const DepthwiseTask& task = work.task;
  const Divider::Parts of_pixel = work.packs.split(item);
  Spot spot = spot_at(work, of_pixel.quotient);
  spot.channel = static_cast<int>(of_pixel.remainder) * pack;
  const int taps = task.rows.kernel * task.columns.kernel;
  const T* const weights = static_cast<const T*>(task.weights) + std::int64_t{spot.channel} * taps;
  float sums[pack] = {};
  for (int kh = 0; kh < task.rows.kernel; ++kh) {
    const int h = under_tap(task.rows, spot.row, kh);
    if (h < 0 || h >= task.rows.src) continue;
    for (int kw = 0; kw < task.columns.kernel; ++kw) {
      const int w = under_tap(task.columns, spot.column, kw);
      if (w < 0 || w >= task.columns.src) continue;
      add_products(pixel_of<T, pack>(task.src, spot.sample, task, true, h, w, spot.channel),
                   weights + kh * task.columns.kernel + kw, taps, sums);
    }
  }
#pragma unroll
  for (int i = 0; i < pack; ++i) {
    if (task.bias != nullptr) sums[i] += task.bias[spot.channel + i];
    if (task.activation != kNoActivation) {
      sums[i] = activate(task.activation, task.slope, sums[i]);
    }
  }
  store_sums<T, pack>(sums, task.dst, spot);
}

template <typename T, int pack>
__global__ __launch_bounds__(kThreads) void any_depthwise_data(AnyWork work) {
  const std::uint32_t item = blockIdx.x * kThreads + threadIdx.x;
  if (item >= work.items) return;
  const DepthwiseTask& task = work.task;
  const Divider::Parts of_pixel = work.packs.split(item);
  Spot spot = spot_at(work, of_pixel.quotient);
  spot.channel = static_cast<int>(of_pixel.remainder) * pack;
  const int taps = task.rows.kernel * task.columns.kernel;
  const T* const weights = static_cast<const T*>(task.weights) + std::int64_t{spot.channel} * taps;
  float sums[pack] = {};
  for (int kh = 0; kh < task.rows.kernel; ++kh) {
    const int h = reader_of(task.rows, spot.row, kh);
    if (h < 0) continue;
    for (int kw = 0; kw < task.columns.kernel; ++kw) {
      const int w = reader_of(task.columns, spot.column, kw);
      if (w < 0) continue;
      add_products(pixel_of<T, pack>(task.dst, spot.sample, task, false, h, w, spot.channel),
                   weights + kh * task.columns.kernel + kw, taps, sums);
    }
  }
  store_sums<T, pack>(sums, task.src, spot);
}

// One tap to a block; its threads keep their channels and walk over the pixels of diff_dst.
template <typename T, int pack>
__global__ __launch_bounds__(kThreads) void any_depthwise_weights(AnyWork work) {
  __shared__ float shared[kThreads * pack];
  const DepthwiseTask& task = work.task;
  const int lane = static_cast<int>(threadIdx.x) / work.block.packs;
  const int own_pack = static_cast<int>(threadIdx.x) % work.block.packs;
  const int channel = (static_cast<int>(blockIdx.y) * work.block.packs + own_pack) * pack;
  const auto tap = static_cast<int>(blockIdx.z);
  const int kh = tap / task.columns.kernel, kw = tap % task.columns.kernel;
  float sums[pack] = {};
  if (lane < work.block.lanes && channel < task.channels) {
    const auto lanes = static_cast<std::uint32_t>(work.block.lanes);
    for (std::uint32_t pixel = blockIdx.x * lanes + lane; pixel < work.items;
         pixel += gridDim.x * lanes) {
      const Spot spot = spot_at(work, pixel);
      const int h = under_tap(task.rows, spot.row, kh);
      const int w = under_tap(task.columns, spot.column, kw);
      if (h < 0 || h >= task.rows.src || w < 0 || w >= task.columns.src) continue;
      const auto src = pixel_of<T, pack>(task.src, spot.sample, task, true, h, w, channel);
      const auto diff = load<T, pack>(static_cast<const T*>(task.dst.data) +
                                      spot.pixel * task.dst.stride + channel);
#pragma unroll
      for (int i = 0; i < pack; ++i) sums[i] += src.get(i) * diff.get(i);
    }
  }
#pragma unroll
  for (int i = 0; i < pack; ++i) shared[threadIdx.x * pack + i] = sums[i];
  __syncthreads();
  const int width = work.block.packs * pack;
  const std::int64_t taps = gridDim.z, first = std::int64_t{blockIdx.y} * width;
  for (int i = static_cast<int>(threadIdx.x); i < width && first + i < task.channels;
       i += kThreads) {
    float sum = 0.0F;
    for (int other = 0; other < work.block.lanes; ++other) sum += shared[other * width + i];
    task.parts[(blockIdx.x * task.channels + first + i) * taps + tap] = sum;
  }
}

enum class Op { forward, backward_data, backward_weights };

template <typename T, int pack>
void launch_weights(AnyWork work, Stream stream) {
  const DepthwiseTask& task = work.task;
  const int taps = task.rows.kernel * task.columns.kernel;
  const std::int64_t weights = task.channels * taps;
  const std::int64_t pixels = task.samples * task.rows.dst * task.columns.dst;
  work.items = static_cast<std::uint32_t>(pixels);
  work.columns = Divider(task.columns.dst);
  work.rows = Divider(task.rows.dst);
  work.block = channel_block(task.channels / pack, kThreads, 32);
  const std::int64_t wanted = std::int64_t{device_limits().multiprocessors} * 4;
  const std::int64_t most = std::clamp<std::int64_t>(
      wanted / (std::int64_t{work.block.groups} * taps), 1, depthwise_parts(weights));
  const std::int64_t parts = std::min(ceil_div(pixels, work.block.lanes), most);
  const dim3 grid(static_cast<unsigned>(parts), static_cast<unsigned>(work.block.groups),
                  static_cast<unsigned>(taps));
  any_depthwise_weights<T, pack><<<grid, kThreads, 0, stream>>>(work);
  check_launch("any_depthwise_weights");
  launch_sum_parts(task.parts, static_cast<int>(parts), weights, task.diff_weights, task.dtype,
                   stream);
}

template <typename T, int pack>
void launch_pack(const DepthwiseTask& task, Op op, Stream stream) {
  AnyWork work{};
  work.task = task;
  if (op == Op::backward_weights) return launch_weights<T, pack>(work, stream);
  const int height = op == Op::forward ? task.rows.dst : task.rows.src;
  const int width = op == Op::forward ? task.columns.dst : task.columns.src;
  const std::int64_t packs = task.channels / pack;
  const std::int64_t items = task.samples * height * width * packs;
  work.items = static_cast<std::uint32_t>(items);
  work.packs = Divider(packs);
  work.columns = Divider(width);
  work.rows = Divider(height);
  const auto blocks = static_cast<unsigned>(ceil_div(items, kThreads));
  if (op == Op::forward) {
    any_depthwise<T, pack><<<blocks, kThreads, 0, stream>>>(work);
  } else {
    any_depthwise_data<T, pack><<<blocks, kThreads, 0, stream>>>(work);
  }
  check_launch("any_depthwise");
}

template <typename T>
void launch_type(const DepthwiseTask& task, Op op, Stream stream) {
  constexpr int kPack = 8 / static_cast<int>(sizeof(T)), kBytes = static_cast<int>(sizeof(T));
  if (packs_fit(kPack, {{task.src, kBytes}, {task.dst, kBytes}})) {
    return launch_pack<T, kPack>(task, op, stream);
  }
  launch_pack<T, 1>(task, op, stream);
}

void launch_op(const DepthwiseTask& task, Op op, Stream stream) {
  if (task.dtype == DType::bf16) return launch_type<bf16>(task, op, stream);
  if (task.dtype == DType::f16) return launch_type<f16>(task, op, stream);
  launch_type<float>(task, op, stream);
}

}  // namespace

std::int64_t depthwise_parts(std::int64_t weights) {
  constexpr std::int64_t kMostFloats = std::int64_t{4} << 20;
  return std::clamp<std::int64_t>(kMostFloats / weights, 1, 1024);
}

void launch_any_depthwise(const DepthwiseTask& task, Stream stream) {
  launch_op(task, Op::forward, stream);
}
void launch_any_depthwise_backward_data(const DepthwiseTask& task, Stream stream) {
  launch_op(task, Op::backward_data, stream);
}
void launch_any_depthwise_backward_weights(const DepthwiseTask& task, Stream stream) {
  launch_op(task, Op::backward_weights, stream);
}

}  // namespace ridgeline::cuda
