#include "backends/cuda/depthwise/depthwise_tiles.cuh"
#include "backends/cuda/sums/sum_parts.h"

namespace ridgeline::cuda {
namespace {

constexpr int kResidentBlocks = 3;  // on a multiprocessor

struct WeightsWork {
  Plane src, diff_dst;
  std::int64_t channels;
  float* parts;
  Tiling tiling;
  ChannelBlock block;
  std::uint32_t items;  // pieces of all samples
  Divider by_strips, by_segments;
};

// The nine sums of a thread's channels.
template <typename T>
struct TapSums {
  static constexpr int kLanes = kLaneChannels<T>;
  float sums[9][kLanes] = {};

  // Adds src row r times the rows of diff_dst that see it, under one column of taps.
  template <int stride, int rows>
  __device__ __forceinline__ void add(int r, const float (&values)[kLanes],
                                      const float (&diff)[rows][kLanes], int kernel_column) {
#pragma unroll
    for (int row = 0; row < rows; ++row) {
      const int tap = r - stride * row;
      if (tap < 0 || tap > 2) continue;
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) {
        sums[tap * 3 + kernel_column][lane] += values[lane] * diff[row][lane];
      }
    }
  }
};

// A column of diff_dst as numbers.
template <typename T, int rows>
struct DiffColumn {
  static constexpr int kLanes = kLaneChannels<T>;
  float values[rows][kLanes];

  __device__ __forceinline__ void take(const PixelColumn<T, rows>& column) {
#pragma unroll
    for (int row = 0; row < rows; ++row) widen<T>(column.pixels[row], values[row]);
  }
  __device__ __forceinline__ void clear() { take(PixelColumn<T, rows>{}); }
};

// Stride 1: a column of src meets three columns of diff_dst; three in turn take the roles left,
// middle and right, so that nothing is moved.
template <typename T>
__device__ __forceinline__ void add_stride_1(const WeightsWork& work, const Piece& piece,
                                             std::int64_t channel, TapSums<T>& taps) {
  constexpr int kRows = kStripRows<1>;
  const std::uint32_t src_pitch = row_pitch<T>(work.src);
  const std::uint32_t diff_pitch = row_pitch<T>(work.diff_dst);
  const std::uint32_t src_rows = rows_inside<kRows + 2>(piece.first_row - 1, work.src.height);
  const std::uint32_t diff_rows = rows_inside<kRows>(piece.first_row, work.diff_dst.height);
  int column = piece.first_column - 1;
  const std::byte* src = pixel_at<T>(work.src, piece.sample, piece.first_row - 1, column, channel);
  const std::byte* diff =
      pixel_at<T>(work.diff_dst, piece.sample, piece.first_row, column + 1, channel);

  PixelColumn<T, kRows + 2> pixels;
  PixelColumn<T, kRows> arriving;  // the column of diff_dst that becomes the right one
  DiffColumn<T, kRows> diffs[3];
  diffs[0].clear();
  diffs[1].clear();
  pixels.read(src, src_pitch, column >= 0 && column < work.src.width ? src_rows : 0);
  arriving.read(diff, diff_pitch, diff_rows);

  const auto step = [&](auto phase) {
    constexpr int kLeft = decltype(phase)::value, kMiddle = (kLeft + 1) % 3,
                  kRight = (kLeft + 2) % 3;
    diffs[kRight].take(arriving);
    src += pixel_pitch<T>(work.src);
    diff += pixel_pitch<T>(work.diff_dst);
    arriving.read(diff, diff_pitch, column + 2 < piece.end_column ? diff_rows : 0);
    const bool more = column < piece.end_column && column + 1 < work.src.width;
    pixels.use_and_read(src, src_pitch, more ? src_rows : 0, [&](int r, const auto& values) {
      taps.template add<1>(r, values, diffs[kLeft].values, 2);
      taps.template add<1>(r, values, diffs[kMiddle].values, 1);
      taps.template add<1>(r, values, diffs[kRight].values, 0);
    });
    ++column;
  };
  while (true) {
    step(std::integral_constant<int, 0>());
    if (column > piece.end_column) break;
    step(std::integral_constant<int, 1>());
    if (column > piece.end_column) break;
    step(std::integral_constant<int, 2>());
    if (column > piece.end_column) break;
  }
}

// Stride 2: a column of diff_dst sees three columns of src, the last of which is the next one's
// first.
template <typename T>
__device__ __forceinline__ void add_stride_2(const WeightsWork& work, const Piece& piece,
                                             std::int64_t channel, TapSums<T>& taps) {
  constexpr int kRows = kStripRows<2>, kSrcRows = 2 * kRows + 1;
  const std::uint32_t src_pitch = row_pitch<T>(work.src);
  const std::uint32_t diff_pitch = row_pitch<T>(work.diff_dst);
  const int first_src_row = 2 * piece.first_row - 1;
  const std::uint32_t src_rows = rows_inside<kSrcRows>(first_src_row, work.src.height);
  const std::uint32_t diff_rows = rows_inside<kRows>(piece.first_row, work.diff_dst.height);
  int column = piece.first_column, src_column = 2 * column - 1;
  const int src_end = min(2 * piece.end_column, work.src.width);  // read no further
  const std::byte* src = pixel_at<T>(work.src, piece.sample, first_src_row, src_column, channel);
  const std::byte* diff =
      pixel_at<T>(work.diff_dst, piece.sample, piece.first_row, column, channel);

  PixelColumn<T, kSrcRows> pixels;
  PixelColumn<T, kRows> arriving;
  DiffColumn<T, kRows> diffs[2];
  pixels.read(src, src_pitch, src_column >= 0 && src_column < work.src.width ? src_rows : 0);
  arriving.read(diff, diff_pitch, diff_rows);
  diffs[0].take(arriving);
  const auto read_diff = [&] {
    diff += pixel_pitch<T>(work.diff_dst);
    ++column;
    arriving.read(diff, diff_pitch, column < piece.end_column ? diff_rows : 0);
  };
  const auto use = [&](const auto& body) {
    src += pixel_pitch<T>(work.src);
    ++src_column;
    pixels.use_and_read(src, src_pitch, src_column < src_end ? src_rows : 0, body);
  };
  read_diff();
  use([&](int r, const auto& values) { taps.template add<2>(r, values, diffs[0].values, 0); });

  const auto step = [&](auto phase) {
    constexpr int kThis = decltype(phase)::value, kNext = 1 - kThis;
    use([&](int r, const auto& values) {
      taps.template add<2>(r, values, diffs[kThis].values, 1);
    });
    diffs[kNext].take(arriving);
    read_diff();
    use([&](int r, const auto& values) {
      taps.template add<2>(r, values, diffs[kThis].values, 2);
      taps.template add<2>(r, values, diffs[kNext].values, 0);
    });
  };
  // `column` is one ahead of the column in use.
  while (true) {
    step(std::integral_constant<int, 0>());
    if (column > piece.end_column) break;
    step(std::integral_constant<int, 1>());
    if (column > piece.end_column) break;
  }
}

__device__ __forceinline__ Piece piece_of(const WeightsWork& work, std::uint32_t item,
                                          int strip_rows) {
  const Divider::Parts strip = work.by_strips.split(item);
  const Divider::Parts segment = work.by_segments.split(strip.quotient);
  Piece piece;
  piece.sample = segment.quotient;
  piece.first_row = static_cast<int>(strip.remainder) * strip_rows;
  piece.first_column = static_cast<int>(segment.remainder) * work.tiling.segment_width;
  piece.end_column = min(piece.first_column + work.tiling.segment_width, work.diff_dst.width);
  return piece;
}

// Threads keep their channels and walk over pieces; at the end the block adds up its threads' sums,
// in order, and leaves them as one part.
template <typename T, int stride>
__global__ __launch_bounds__(kTileThreads,
                             kResidentBlocks) void depthwise_weights(WeightsWork work) {
  constexpr int kLanes = kLaneChannels<T>;
  __shared__ float sums[kTileThreads * 9 * kLanes];
  const int lane = static_cast<int>(threadIdx.x) / work.block.packs;
  const int pack = static_cast<int>(threadIdx.x) % work.block.packs;
  const std::int64_t channel = (std::int64_t{blockIdx.y} * work.block.packs + pack) * kLanes;
  TapSums<T> taps;
  if (lane < work.block.lanes && channel < work.channels) {
    const auto lanes = static_cast<std::uint32_t>(work.block.lanes);
    for (std::uint32_t item = blockIdx.x * lanes + lane; item < work.items;
         item += gridDim.x * lanes) {
      const Piece piece = piece_of(work, item, kStripRows<stride>);
      if constexpr (stride == 1) {
        add_stride_1<T>(work, piece, channel, taps);
      } else {
        add_stride_2<T>(work, piece, channel, taps);
      }
    }
  }
  // As the weights lie: channels by taps.
#pragma unroll
  for (int i = 0; i < kLanes; ++i) {
#pragma unroll
    for (int tap = 0; tap < 9; ++tap) {
      sums[(threadIdx.x * kLanes + i) * 9 + tap] = taps.sums[tap][i];
    }
  }
  __syncthreads();
  const int width = work.block.packs * kLanes * 9;
  const std::int64_t weights = work.channels * 9, first = std::int64_t{blockIdx.y} * width;
  for (int i = static_cast<int>(threadIdx.x); i < width && first + i < weights; i += kTileThreads) {
    float sum = 0.0F;
    for (int other = 0; other < work.block.lanes; ++other) sum += sums[other * width + i];
    work.parts[blockIdx.x * weights + first + i] = sum;
  }
}

template <typename T, int stride>
void launch_stride(const DepthwiseTask& task, Stream stream) {
  WeightsWork work{};
  work.src = plane_of(task.src, task.rows.src, task.columns.src);
  work.diff_dst = plane_of(task.dst, task.rows.dst, task.columns.dst);
  work.channels = task.channels;
  work.parts = task.parts;
  const std::int64_t packs = task.channels / kLaneChannels<T>;
  work.block = channel_block(packs, kTileThreads, 16);
  work.tiling =
      tiling_for(task.samples, packs, task.rows.dst, task.columns.dst, kStripRows<stride>);
  const std::int64_t items = task.samples * work.tiling.segments * work.tiling.strips;
  work.items = static_cast<std::uint32_t>(items);
  work.by_strips = Divider(work.tiling.strips);
  work.by_segments = Divider(work.tiling.segments);
  // All blocks run at once, and every thread gets as many pieces as the others.
  const std::int64_t wanted = std::int64_t{device_limits().multiprocessors} * kResidentBlocks;
  const std::int64_t most =
      std::clamp<std::int64_t>(wanted / work.block.groups, 1, depthwise_parts(task.channels * 9));
  const std::int64_t pieces_each = ceil_div(items, most * work.block.lanes);
  const std::int64_t parts = ceil_div(items, pieces_each * work.block.lanes);
  const dim3 grid(static_cast<unsigned>(parts), static_cast<unsigned>(work.block.groups));
  depthwise_weights<T, stride><<<grid, kTileThreads, 0, stream>>>(work);
  check_launch("depthwise_weights");
  launch_sum_parts(task.parts, static_cast<int>(parts), task.channels * 9, task.diff_weights,
                   task.dtype, stream);
}

template <typename T>
void launch_type(const DepthwiseTask& task, Stream stream) {
  if (task.rows.stride == 1) return launch_stride<T, 1>(task, stream);
  launch_stride<T, 2>(task, stream);
}

}  // namespace

void launch_depthwise_backward_weights(const DepthwiseTask& task, Stream stream) {
  if (task.dtype == DType::bf16) return launch_type<bf16>(task, stream);
  if (task.dtype == DType::f16) return launch_type<f16>(task, stream);
  launch_type<float>(task, stream);
}

}  // namespace ridgeline::cuda
