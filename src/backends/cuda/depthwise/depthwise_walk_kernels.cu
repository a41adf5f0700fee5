#include "backends/cuda/depthwise/depthwise_walk.cuh"
#include "backends/cuda/elementwise/elementwise_kernels.h"

namespace ridgeline::cuda {
namespace {

struct WalkWork {
  Plane from, to;
  std::int64_t channels;
  const void* weights;
  const float* bias;
  WalkSplit split;
  std::uint32_t items;
  ChannelBlock block;
};

// Sums of the rows under way.
template <typename Window>
struct RowSums {
  float sums[Window::kRows][Window::kColumns];

  __device__ __forceinline__ void clear_from(int first, float bias) {
#pragma unroll
    for (int j = first; j < Window::kRows; ++j) {
#pragma unroll
      for (int x = 0; x < Window::kColumns; ++x) sums[j][x] = bias;
    }
  }
  // Adds the e-th row that a step reads.
  __device__ __forceinline__ void add(int e, const float (&values)[Window::kReadColumns],
                                      const float (&weights)[Window::kTaps]) {
#pragma unroll
    for (int j = 0; j < Window::kRows; ++j) {
      const int down = Window::row_tap(e, j);
      if (!Window::is_tap(down)) continue;
#pragma unroll
      for (int x = 0; x < Window::kColumns; ++x) {
#pragma unroll
        for (int y = 0; y < Window::kReadColumns; ++y) {
          const int across = Window::column_tap(x, y);
          if (!Window::is_tap(across)) continue;
          sums[j][x] = fmaf(values[y], weights[down * Window::kKernel + across], sums[j][x]);
        }
      }
    }
  }
  // The rows that are done leave, the others move up.
  __device__ __forceinline__ void next_step(float bias) {
#pragma unroll
    for (int j = 0; j + Window::kDone < Window::kRows; ++j) {
#pragma unroll
      for (int x = 0; x < Window::kColumns; ++x) sums[j][x] = sums[j + Window::kDone][x];
    }
    clear_from(Window::kRows - Window::kDone, bias);
  }
};

template <typename T, int kernel, int stride, bool spread>
__device__ __forceinline__ void walk(const WalkWork& work, const WalkPiece& piece,
                                     std::int64_t channel, float bias,
                                     const float (&weights)[kernel * kernel]) {
  using Window = WalkWindow<kernel, stride, spread>;
  constexpr int kReads = Window::kReads, kDone = Window::kDone;
  const std::uint32_t from_pixel = pixel_pitch<T>(work.from), to_pixel = pixel_pitch<T>(work.to);
  const std::uint32_t from_row = row_pitch<T>(work.from), to_row = row_pitch<T>(work.to);
  const int first_read = Window::first_column_read(piece.first_column);
  const auto columns = columns_inside<Window::kReadColumns>(first_read, work.from.width);
  const auto written = columns_inside<Window::kColumns>(piece.first_column, work.to.width);
  // Rows above the image add nothing.
  const int start =
      spread ? piece.first_row / stride + Window::kLow : piece.first_row - Window::kHigh;
  const int step = max(start, 0);
  int row = kReads * step;
  int done = spread ? stride * step - Window::kPad : step + Window::kLow;
  const std::byte* from = pixel_at<T>(work.from, piece.sample, row, first_read, channel);
  std::byte* to = pixel_at<T>(work.to, piece.sample, done, piece.first_column, channel);

  PixelRow<T, Window::kReadColumns> arriving[kReads];
  const auto read = [&] {
#pragma unroll
    for (int e = 0; e < kReads; ++e) {
      arriving[e].read(from + e * from_row, from_pixel, row + e < work.from.height ? columns : 0);
    }
  };
  RowSums<Window> rows;
  rows.clear_from(0, bias);
  read();
#pragma unroll 1
  for (; done < piece.end_row; done += kDone) {
    float values[kReads][Window::kReadColumns];
#pragma unroll
    for (int e = 0; e < kReads; ++e) arriving[e].widen_to(values[e]);
    const bool any = row < work.from.height;
    row += kReads;
    from += kReads * from_row;
    if (done + kDone < piece.end_row) read();
    if (any) {
#pragma unroll
      for (int e = 0; e < kReads; ++e) rows.add(e, values[e], weights);
    }
#pragma unroll
    for (int d = 0; d < kDone; ++d) {
      if (done + d < piece.first_row || done + d >= piece.end_row) continue;
#pragma unroll
      for (int x = 0; x < Window::kColumns; ++x) {
        if ((written >> x & 1U) == 0) continue;
        *reinterpret_cast<T*>(to + d * to_row + x * to_pixel) = from_float<T>(rows.sums[d][x]);
      }
    }
    to += kDone * to_row;
    rows.next_step(bias);
  }
}

// The block's weights come through shared memory: a thread's own lie one behind the other, those of
// neighbouring threads an odd number of words apart.
template <typename T, int kernel, int stride, bool spread>
__global__ __launch_bounds__(kWalkThreads, walk_blocks(kernel, stride)) void depthwise_walk(
    const __grid_constant__ WalkWork work) {
  constexpr int kTaps = kernel * kernel;
  __shared__ float shared[kWalkChannels * kTaps];
  const std::int64_t first = std::int64_t{blockIdx.y} * work.block.packs;
  const auto channels =
      static_cast<int>(min(std::int64_t{work.block.packs}, work.channels - first));
  const T* const weights_of_block = static_cast<const T*>(work.weights) + first * kTaps;
  for (int i = static_cast<int>(threadIdx.x); i < channels * kTaps; i += kWalkThreads) {
    shared[i] = to_float(weights_of_block[i]);
  }
  __syncthreads();
  const int lane = static_cast<int>(threadIdx.x) / work.block.packs;
  const int own = static_cast<int>(threadIdx.x) % work.block.packs;
  const std::uint32_t item = blockIdx.x * work.block.lanes + lane;
  if (lane >= work.block.lanes || own >= channels || item >= work.items) return;
  float weights[kTaps];
#pragma unroll
  for (int tap = 0; tap < kTaps; ++tap) weights[tap] = shared[own * kTaps + tap];
  const float bias = work.bias == nullptr ? 0.0F : work.bias[first + own];
  const WalkPiece piece(work.split, item, work.to.height);
  walk<T, kernel, stride, spread>(work, piece, first + own, bias, weights);
}

template <typename T, int kernel, int stride, bool spread>
void start(WalkWindow<kernel, stride, spread> window, WalkWork work, const DepthwiseTask& task,
           Stream stream) {
  const WalkTiling tiling = walk_tiling(task.samples, task.channels, work.to.height, work.to.width,
                                        window.kColumns, kernel, window.kDone);
  const std::int64_t items = task.samples * tiling.tiles * tiling.segments;
  work.items = static_cast<std::uint32_t>(items);
  work.split = {Divider(tiling.tiles), Divider(task.samples), window.kColumns, tiling.segment_rows};
  work.channels = task.channels;
  work.weights = task.weights;
  work.block = channel_block(task.channels, kWalkThreads, kWalkChannels);
  const dim3 grid(static_cast<unsigned>(ceil_div(items, work.block.lanes)),
                  static_cast<unsigned>(work.block.groups));
  depthwise_walk<T, kernel, stride, spread><<<grid, kWalkThreads, 0, stream>>>(work);
  check_launch("depthwise_walk");
}

template <bool spread>
void start_type(const WalkWork& work, const DepthwiseTask& task, Stream stream) {
  with_walk_window<spread>(task, [&](auto window) {
    if (task.dtype == DType::bf16) return start<bf16>(window, work, task, stream);
    if (task.dtype == DType::f16) return start<f16>(window, work, task, stream);
    start<float>(window, work, task, stream);
  });
}

}  // namespace

bool is_walked_depthwise(const DepthwiseTask& task) {
  const auto fits = [&](const DepthwiseAxis& axis) {
    const bool window = axis.kernel == 7
                            ? axis.stride == 1
                            : (axis.kernel == 3 || axis.kernel == 5) && axis.stride <= 2;
    return window && axis.kernel == task.rows.kernel && axis.stride == task.rows.stride &&
           axis.pad == axis.kernel / 2 && axis.dilation == 1;
  };
  // Offsets of a few rows are counted in 32 bits of bytes.
  const std::int64_t row =
      std::max(task.src.stride * task.columns.src, task.dst.stride * task.columns.dst);
  return fits(task.rows) && fits(task.columns) && row < std::int64_t{1} << 26;
}

void launch_walked_depthwise(const DepthwiseTask& task, Stream stream) {
  WalkWork work{};
  work.from = plane_of(task.src, task.rows.src, task.columns.src);
  work.to = plane_of(task.dst, task.rows.dst, task.columns.dst);
  work.bias = task.bias;
  start_type<false>(work, task, stream);
  if (task.activation == kNoActivation) return;
  Elementwise activation;
  activation.dtype = task.dtype;
  activation.src = activation.dst = task.dst;
  activation.activation = task.activation;
  activation.slope = task.slope;
  launch_elementwise(activation, stream);
}

void launch_walked_depthwise_backward_data(const DepthwiseTask& task, Stream stream) {
  WalkWork work{};
  work.from = plane_of(task.dst, task.rows.dst, task.columns.dst);
  work.to = plane_of(task.src, task.rows.src, task.columns.src);
  start_type<true>(work, task, stream);
}

}  // namespace ridgeline::cuda
