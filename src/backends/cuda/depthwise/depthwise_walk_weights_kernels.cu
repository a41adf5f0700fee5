#include "backends/cuda/depthwise/depthwise_walk.cuh"
#include "backends/cuda/sums/sum_parts.h"

namespace ridgeline::cuda {
namespace {

struct WalkWeightsWork {
  Plane src, diff_dst;
  std::int64_t channels;
  float* parts;
  WalkSplit split;
  std::uint32_t items;
  ChannelBlock block;
};

// The same walk as forward, with the roles of weights and sums exchanged: the rows of diff_dst that
// the window spans move along, the sums of all taps stay.
template <typename T, int kernel, int stride>
struct WalkedTaps {
  using Window = WalkWindow<kernel, stride, false>;
  float sums[kernel * kernel] = {};

  // Adds the e-th src row of a step.
  __device__ __forceinline__ void add(int e, const float (&values)[Window::kReadColumns],
                                      const float (&diff)[Window::kRows][Window::kColumns]) {
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
          float& sum = sums[down * kernel + across];
          sum = fmaf(values[y], diff[j][x], sum);
        }
      }
    }
  }

  __device__ __forceinline__ void add_piece(const WalkWeightsWork& work, const WalkPiece& piece,
                                            std::int64_t channel) {
    constexpr int kRows = Window::kRows, kColumns = Window::kColumns;
    const std::uint32_t src_pixel = pixel_pitch<T>(work.src);
    const std::uint32_t diff_pixel = pixel_pitch<T>(work.diff_dst);
    const std::uint32_t src_row = row_pitch<T>(work.src), diff_row = row_pitch<T>(work.diff_dst);
    const int first_read = Window::first_column_read(piece.first_column);
    const auto src_columns = columns_inside<Window::kReadColumns>(first_read, work.src.width);
    const auto diff_columns = columns_inside<kColumns>(piece.first_column, work.diff_dst.width);
    // Rows above the image add nothing.
    int step = max(piece.first_row - Window::kHigh, 0);
    const std::byte* src = pixel_at<T>(work.src, piece.sample, stride * step, first_read, channel);
    const std::byte* diff =
        pixel_at<T>(work.diff_dst, piece.sample, step + Window::kLow, piece.first_column, channel);

    PixelRow<T, Window::kReadColumns> pixels[stride];
    PixelRow<T, kColumns> arriving;  // the row of diff_dst that comes last in the window
    const auto read = [&] {
#pragma unroll
      for (int e = 0; e < stride; ++e) {
        const bool inside = stride * step + e < work.src.height;
        pixels[e].read(src + e * src_row, src_pixel, inside ? src_columns : 0);
      }
    };
    const auto read_diff = [&](PixelRow<T, kColumns>& to, int j) {
      const int row = step + Window::kLow + j;
      const bool inside = row >= piece.first_row && row < piece.end_row;
      to.read(diff + j * static_cast<std::int64_t>(diff_row), diff_pixel,
              inside ? diff_columns : 0);
    };
    float window[kRows][kColumns];
    {
      PixelRow<T, kColumns> first[kRows];
#pragma unroll
      for (int j = 0; j < kRows; ++j) read_diff(first[j], j);
      read();
#pragma unroll
      for (int j = 0; j < kRows; ++j) first[j].widen_to(window[j]);
    }
    const int last_step = min(piece.end_row - 1 - Window::kLow, (work.src.height - 1) / stride);
#pragma unroll 1
    while (true) {
      float values[stride][Window::kReadColumns];
#pragma unroll
      for (int e = 0; e < stride; ++e) pixels[e].widen_to(values[e]);
      const bool more = step < last_step;
      ++step;
      src += stride * src_row;
      diff += diff_row;
      if (more) {
        read();
        read_diff(arriving, kRows - 1);
      }
#pragma unroll
      for (int e = 0; e < stride; ++e) add(e, values[e], window);
      if (!more) break;
#pragma unroll
      for (int j = 0; j + 1 < kRows; ++j) {
#pragma unroll
        for (int x = 0; x < kColumns; ++x) window[j][x] = window[j + 1][x];
      }
      arriving.widen_to(window[kRows - 1]);
    }
  }
};

// As for 3x3: threads keep their channels and walk over pieces; at the end the block adds up its
// threads' sums, in order, and leaves them as one part.
template <typename T, int kernel, int stride>
__global__ __launch_bounds__(kWalkThreads, walk_blocks(kernel, stride)) void depthwise_walk_weights(
    const __grid_constant__ WalkWeightsWork work) {
  constexpr int kTaps = kernel * kernel;
  __shared__ float shared[kWalkThreads * kTaps];
  const int lane = static_cast<int>(threadIdx.x) / work.block.packs;
  const int own = static_cast<int>(threadIdx.x) % work.block.packs;
  const std::int64_t channel = std::int64_t{blockIdx.y} * work.block.packs + own;
  WalkedTaps<T, kernel, stride> taps;
  if (lane < work.block.lanes && channel < work.channels) {
    for (std::uint32_t item = blockIdx.x * work.block.lanes + lane; item < work.items;
         item += gridDim.x * work.block.lanes) {
      taps.add_piece(work, WalkPiece(work.split, item, work.diff_dst.height), channel);
    }
  }
#pragma unroll
  for (int tap = 0; tap < kTaps; ++tap) shared[threadIdx.x * kTaps + tap] = taps.sums[tap];
  __syncthreads();
  const int width = work.block.packs * kTaps;
  const std::int64_t weights = work.channels * kTaps, first = std::int64_t{blockIdx.y} * width;
  for (int i = static_cast<int>(threadIdx.x); i < width && first + i < weights; i += kWalkThreads) {
    float sum = 0.0F;
    for (int other = 0; other < work.block.lanes; ++other) sum += shared[other * width + i];
    work.parts[blockIdx.x * weights + first + i] = sum;
  }
}

template <typename T, int kernel, int stride>
void start(WalkWindow<kernel, stride, false> window, const DepthwiseTask& task, Stream stream) {
  constexpr int kResidentBlocks = walk_blocks(kernel, stride);
  const WalkTiling tiling = walk_tiling(task.samples, task.channels, task.rows.dst,
                                        task.columns.dst, window.kColumns, kernel, 1);
  const std::int64_t items = task.samples * tiling.tiles * tiling.segments;
  const std::int64_t weights = task.channels * kernel * kernel;
  WalkWeightsWork work{};
  work.src = plane_of(task.src, task.rows.src, task.columns.src);
  work.diff_dst = plane_of(task.dst, task.rows.dst, task.columns.dst);
  work.channels = task.channels;
  work.parts = task.parts;
  work.items = static_cast<std::uint32_t>(items);
  work.split = {Divider(tiling.tiles), Divider(task.samples), window.kColumns, tiling.segment_rows};
  work.block = channel_block(task.channels, kWalkThreads, kWalkChannels);
  // All blocks run at once, and every thread gets as many pieces as the others.
  const std::int64_t wanted = std::int64_t{device_limits().multiprocessors} * kResidentBlocks;
  const std::int64_t most =
      std::clamp<std::int64_t>(wanted / work.block.groups, 1, depthwise_parts(weights));
  const std::int64_t pieces_each = ceil_div(items, most * work.block.lanes);
  const std::int64_t parts = ceil_div(items, pieces_each * work.block.lanes);
  const dim3 grid(static_cast<unsigned>(parts), static_cast<unsigned>(work.block.groups));
  depthwise_walk_weights<T, kernel, stride><<<grid, kWalkThreads, 0, stream>>>(work);
  check_launch("depthwise_walk_weights");
  launch_sum_parts(task.parts, static_cast<int>(parts), weights, task.diff_weights, task.dtype,
                   stream);
}

}  // namespace

void launch_walked_depthwise_backward_weights(const DepthwiseTask& task, Stream stream) {
  with_walk_window<false>(task, [&](auto window) {
    if (task.dtype == DType::bf16) return start<bf16>(window, task, stream);
    if (task.dtype == DType::f16) return start<f16>(window, task, stream);
    start<float>(window, task, stream);
  });
}

}  // namespace ridgeline::cuda
