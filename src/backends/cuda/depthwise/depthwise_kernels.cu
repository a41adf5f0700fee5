#include "backends/cuda/depthwise/depthwise_tiles.cuh"

namespace ridgeline::cuda {
namespace {

struct GatherWork {
  Plane from, to;
  std::int64_t channels;
  const void* weights;
  bool mirrored;
  const float* bias;
  int activation;
  float slope;
  Tiling tiling;
  std::uint32_t items;
  int tile_packs;
  Divider by_packs, by_strips, by_tiles, by_segments;
};

// What the thread computes: its channels and its piece of the image.
struct Lane {
  std::int64_t channel;
  Piece piece;
};

// REQUIRES: the thread has an item.
__device__ __forceinline__ Lane lane_of(const GatherWork& work, std::uint32_t item,
                                        int lane_channels, int strip_rows) {
  const Divider::Parts pack = work.by_packs.split(item);
  const Divider::Parts strip = work.by_strips.split(pack.quotient);
  const Divider::Parts tile = work.by_tiles.split(strip.quotient);
  const Divider::Parts segment = work.by_segments.split(tile.quotient);
  Lane lane;
  lane.channel = (std::int64_t{tile.remainder} * work.tile_packs + pack.remainder) * lane_channels;
  lane.piece.sample = segment.quotient;
  lane.piece.first_row = static_cast<int>(strip.remainder) * strip_rows;
  lane.piece.first_column = static_cast<int>(segment.remainder) * work.tiling.segment_width;
  lane.piece.end_column = min(lane.piece.first_column + work.tiling.segment_width, work.to.width);
  return lane;
}

// Sums of one column of dst.
template <typename T, int rows>
struct SumColumn {
  static constexpr int kLanes = kLaneChannels<T>;
  float sums[rows][kLanes];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int row = 0; row < rows; ++row) {
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) sums[row][lane] = 0.0F;
    }
  }
  // Adds src row r times one column of weights: it is under tap r - stride * row.
  template <int stride>
  __device__ __forceinline__ void add(int r, const float (&values)[kLanes],
                                      const float (&weights)[9][kLanes], int kernel_column) {
#pragma unroll
    for (int row = 0; row < rows; ++row) {
      const int tap = r - stride * row;
      if (tap < 0 || tap > 2) continue;
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) {
        sums[row][lane] += values[lane] * weights[tap * 3 + kernel_column][lane];
      }
    }
  }
  template <bool epilogue>
  __device__ __forceinline__ void store_to(const GatherWork& work, const float (&bias)[kLanes],
                                           std::byte* first, std::uint32_t pitch,
                                           std::uint32_t inside) const {
#pragma unroll
    for (int row = 0; row < rows; ++row) {
      if ((inside >> row & 1U) == 0) continue;
      Pack<T, kLanes> pixel;
#pragma unroll
      for (int lane = 0; lane < kLanes; ++lane) {
        float value = sums[row][lane];
        if constexpr (epilogue) {
          value += bias[lane];
          if (work.activation != kNoActivation) {
            value = activate(work.activation, work.slope, value);
          }
        }
        pixel.set(lane, value);
      }
      store<T, kLanes>(reinterpret_cast<T*>(first + row * pitch), pixel);
    }
  }
};

template <typename T, bool epilogue>
__device__ __forceinline__ void load_bias(const GatherWork& work, std::int64_t channel,
                                          float (&bias)[kLaneChannels<T>]) {
#pragma unroll
  for (int lane = 0; lane < kLaneChannels<T>; ++lane) {
    bias[lane] = epilogue && work.bias != nullptr ? work.bias[channel + lane] : 0.0F;
  }
}

// Stride 1: src columns go by one after the other; each adds to three columns of dst, of which the
// left one is then complete. Three columns in turn take the roles left, middle and right, so that
// nothing is moved. The next column is under way while this one is used.
template <typename T, bool epilogue>
__device__ __forceinline__ void run_stride_1(const GatherWork& work, const Lane& lane) {
  constexpr int kRows = kStripRows<1>;
  const Piece& piece = lane.piece;
  float weights[9][kLaneChannels<T>], bias[kLaneChannels<T>];
  load_weights<T>(work.weights, lane.channel, work.mirrored, weights);
  load_bias<T, epilogue>(work, lane.channel, bias);

  const std::uint32_t src_pitch = row_pitch<T>(work.from);
  const std::uint32_t dst_pitch = row_pitch<T>(work.to);
  const std::uint32_t src_rows = rows_inside<kRows + 2>(piece.first_row - 1, work.from.height);
  const std::uint32_t dst_rows = rows_inside<kRows>(piece.first_row, work.to.height);
  int column = piece.first_column - 1;
  const std::byte* src =
      pixel_at<T>(work.from, piece.sample, piece.first_row - 1, column, lane.channel);
  std::byte* dst = pixel_at<T>(work.to, piece.sample, piece.first_row, column - 1, lane.channel);

  PixelColumn<T, kRows + 2> pixels;
  SumColumn<T, kRows> sums[3];
#pragma unroll
  for (int i = 0; i < 3; ++i) sums[i].clear();
  pixels.read(src, src_pitch, column >= 0 && column < work.from.width ? src_rows : 0);

  const auto step = [&](auto phase) {
    constexpr int kLeft = decltype(phase)::value, kMiddle = (kLeft + 1) % 3,
                  kRight = (kLeft + 2) % 3;
    src += pixel_pitch<T>(work.from);
    const bool more = column < piece.end_column && column + 1 < work.from.width;
    pixels.use_and_read(src, src_pitch, more ? src_rows : 0, [&](int r, const auto& values) {
      sums[kLeft].template add<1>(r, values, weights, 2);
      sums[kMiddle].template add<1>(r, values, weights, 1);
      sums[kRight].template add<1>(r, values, weights, 0);
    });
    if (column > piece.first_column) {
      sums[kLeft].template store_to<epilogue>(work, bias, dst, dst_pitch, dst_rows);
    }
    sums[kLeft].clear();
    dst += pixel_pitch<T>(work.to);
    ++column;
  };
  // The column behind the last one adds to the last one too.
  while (true) {
    step(std::integral_constant<int, 0>());
    if (column > piece.end_column) break;
    step(std::integral_constant<int, 1>());
    if (column > piece.end_column) break;
    step(std::integral_constant<int, 2>());
    if (column > piece.end_column) break;
  }
}

// Stride 2: a column of dst sees three columns of src, the last of which is the next one's first.
template <typename T, bool epilogue>
__device__ __forceinline__ void run_stride_2(const GatherWork& work, const Lane& lane) {
  constexpr int kRows = kStripRows<2>, kSrcRows = 2 * kRows + 1;
  const Piece& piece = lane.piece;
  float weights[9][kLaneChannels<T>], bias[kLaneChannels<T>];
  load_weights<T>(work.weights, lane.channel, work.mirrored, weights);
  load_bias<T, epilogue>(work, lane.channel, bias);

  const std::uint32_t src_pitch = row_pitch<T>(work.from);
  const std::uint32_t dst_pitch = row_pitch<T>(work.to);
  const int first_src_row = 2 * piece.first_row - 1;
  const std::uint32_t src_rows = rows_inside<kSrcRows>(first_src_row, work.from.height);
  const std::uint32_t dst_rows = rows_inside<kRows>(piece.first_row, work.to.height);
  int src_column = 2 * piece.first_column - 1, column = piece.first_column;
  const int src_end = min(2 * piece.end_column, work.from.width);  // read no further
  const std::byte* src =
      pixel_at<T>(work.from, piece.sample, first_src_row, src_column, lane.channel);
  std::byte* dst = pixel_at<T>(work.to, piece.sample, piece.first_row, column, lane.channel);

  PixelColumn<T, kSrcRows> pixels;
  SumColumn<T, kRows> sums[2];
  sums[0].clear();
  pixels.read(src, src_pitch, src_column >= 0 && src_column < work.from.width ? src_rows : 0);
  const auto use = [&](const auto& body) {
    src += pixel_pitch<T>(work.from);
    ++src_column;
    pixels.use_and_read(src, src_pitch, src_column < src_end ? src_rows : 0, body);
  };
  use([&](int r, const auto& values) { sums[0].template add<2>(r, values, weights, 0); });

  const auto step = [&](auto phase) {
    constexpr int kThis = decltype(phase)::value, kNext = 1 - kThis;
    use([&](int r, const auto& values) { sums[kThis].template add<2>(r, values, weights, 1); });
    sums[kNext].clear();
    use([&](int r, const auto& values) {
      sums[kThis].template add<2>(r, values, weights, 2);
      sums[kNext].template add<2>(r, values, weights, 0);
    });
    sums[kThis].template store_to<epilogue>(work, bias, dst, dst_pitch, dst_rows);
    dst += pixel_pitch<T>(work.to);
    ++column;
  };
  while (true) {
    step(std::integral_constant<int, 0>());
    if (column >= piece.end_column) break;
    step(std::integral_constant<int, 1>());
    if (column >= piece.end_column) break;
  }
}

template <typename T, int stride, bool epilogue>
__global__ __launch_bounds__(kTileThreads, epilogue ? 3 : 4) void depthwise(GatherWork work) {
  const std::uint32_t item = blockIdx.x * kTileThreads + threadIdx.x;
  if (item >= work.items) return;
  const Lane lane = lane_of(work, item, kLaneChannels<T>, kStripRows<stride>);
  if (lane.channel >= work.channels) return;
  if constexpr (stride == 1) {
    run_stride_1<T, epilogue>(work, lane);
  } else {
    run_stride_2<T, epilogue>(work, lane);
  }
}

// Backward data with stride 2: a pixel of diff_dst and its neighbours to the right, below and
// diagonally make four pixels of diff_src. `to` is diff_src; pieces are in pixels of diff_dst's
// size, half of diff_src rounded up.
template <typename T>
__global__ __launch_bounds__(kTileThreads, 4) void depthwise_spread(GatherWork work,
                                                                    int cell_width) {
  constexpr int kRows = 2, kLanes = kLaneChannels<T>;
  const std::uint32_t item = blockIdx.x * kTileThreads + threadIdx.x;
  if (item >= work.items) return;
  const Lane lane = lane_of(work, item, kLanes, kRows);
  if (lane.channel >= work.channels) return;
  const Piece& piece = lane.piece;
  const int end_column = min(piece.first_column + work.tiling.segment_width, cell_width);
  float weights[9][kLanes];
  load_weights<T>(work.weights, lane.channel, false, weights);

  const std::uint32_t src_pitch = row_pitch<T>(work.from);
  const std::uint32_t dst_pitch = row_pitch<T>(work.to);
  const std::uint32_t src_rows = rows_inside<kRows + 1>(piece.first_row, work.from.height);
  int column = piece.first_column;
  const std::byte* src =
      pixel_at<T>(work.from, piece.sample, piece.first_row, column, lane.channel);
  std::byte* dst =
      pixel_at<T>(work.to, piece.sample, 2 * piece.first_row, 2 * column, lane.channel);

  PixelColumn<T, kRows + 1> here, next;
  here.read(src, src_pitch, column < work.from.width ? src_rows : 0);
  for (; column < end_column; ++column) {
    src += pixel_pitch<T>(work.from);
    next.read(src, src_pitch, column + 1 < work.from.width ? src_rows : 0);
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      float corner[kLanes], right[kLanes], below[kLanes], diagonal[kLanes];
      widen<T>(here.pixels[row], corner);
      widen<T>(next.pixels[row], right);
      widen<T>(here.pixels[row + 1], below);
      widen<T>(next.pixels[row + 1], diagonal);
      Pack<T, kLanes> pixels[2][2];
#pragma unroll
      for (int i = 0; i < kLanes; ++i) {
        const auto w = [&](int kh, int kw) { return weights[kh * 3 + kw][i]; };
        pixels[0][0].set(i, corner[i] * w(1, 1));
        pixels[0][1].set(i, corner[i] * w(1, 2) + right[i] * w(1, 0));
        pixels[1][0].set(i, corner[i] * w(2, 1) + below[i] * w(0, 1));
        pixels[1][1].set(i, corner[i] * w(2, 2) + right[i] * w(2, 0) + below[i] * w(0, 2) +
                                diagonal[i] * w(0, 0));
      }
#pragma unroll
      for (int place = 0; place < 4; ++place) {
        const int down = place / 2, across = place % 2;
        const int h = 2 * (piece.first_row + row) + down, w = 2 * column + across;
        if (h < work.to.height && w < work.to.width) {
          std::byte* const to =
              dst + (2 * row + down) * dst_pitch + across * pixel_pitch<T>(work.to);
          store<T, kLanes>(reinterpret_cast<T*>(to), pixels[down][across]);
        }
      }
    }
    dst += 2 * pixel_pitch<T>(work.to);
    here = next;
  }
}

// Sets up items: packs of channels, strips, tiles of packs, segments, samples, fastest first. A
// tile of packs is a cache line.
template <typename T>
unsigned cut(GatherWork& work, const DepthwiseTask& task, int height, int width, int strip_rows) {
  const std::int64_t packs = task.channels / kLaneChannels<T>;
  const ChannelBlock block = channel_block(packs, kTileThreads, 16);
  work.channels = task.channels;
  work.weights = task.weights;
  work.tiling = tiling_for(task.samples, packs, height, width, strip_rows);
  work.tile_packs = block.packs;
  const std::int64_t items =
      task.samples * work.tiling.segments * block.groups * work.tiling.strips * block.packs;
  work.items = static_cast<std::uint32_t>(items);
  work.by_packs = Divider(block.packs);
  work.by_strips = Divider(work.tiling.strips);
  work.by_tiles = Divider(block.groups);
  work.by_segments = Divider(work.tiling.segments);
  return static_cast<unsigned>(ceil_div(items, kTileThreads));
}

template <typename T, int stride>
void launch_gather(GatherWork work, const DepthwiseTask& task, Stream stream) {
  const unsigned blocks = cut<T>(work, task, work.to.height, work.to.width, kStripRows<stride>);
  if (work.bias != nullptr || work.activation != kNoActivation) {
    depthwise<T, stride, true><<<blocks, kTileThreads, 0, stream>>>(work);
  } else {
    depthwise<T, stride, false><<<blocks, kTileThreads, 0, stream>>>(work);
  }
  check_launch("depthwise");
}

template <typename T>
void launch_forward(const DepthwiseTask& task, Stream stream) {
  GatherWork work{};
  work.from = plane_of(task.src, task.rows.src, task.columns.src);
  work.to = plane_of(task.dst, task.rows.dst, task.columns.dst);
  work.bias = task.bias;
  work.activation = task.activation;
  work.slope = task.slope;
  if (task.rows.stride == 1) return launch_gather<T, 1>(work, task, stream);
  launch_gather<T, 2>(work, task, stream);
}

// With stride 1 backward data is forward with the weights turned round.
template <typename T>
void launch_backward(const DepthwiseTask& task, Stream stream) {
  GatherWork work{};
  work.from = plane_of(task.dst, task.rows.dst, task.columns.dst);
  work.to = plane_of(task.src, task.rows.src, task.columns.src);
  work.activation = kNoActivation;
  if (task.rows.stride == 1) {
    work.mirrored = true;
    return launch_gather<T, 1>(work, task, stream);
  }
  const int height = (task.rows.src + 1) / 2, width = (task.columns.src + 1) / 2;
  const unsigned blocks = cut<T>(work, task, height, width, 2);
  depthwise_spread<T><<<blocks, kTileThreads, 0, stream>>>(work, width);
  check_launch("depthwise_spread");
}

}  // namespace

bool is_fast_depthwise(const DepthwiseTask& task) {
  const auto fits = [&](const DepthwiseAxis& axis) {
    return axis.kernel == 3 && axis.pad == 1 && axis.dilation == 1 &&
           axis.stride == task.rows.stride && axis.stride <= 2;
  };
  const auto bytes = static_cast<int>(size_of(task.dtype));
  const bool weights = reinterpret_cast<std::uintptr_t>(task.weights) % 8 == 0;
  // Offsets of some rows are counted in 32 bits of bytes.
  const std::int64_t row =
      std::max(task.src.stride * task.columns.src, task.dst.stride * task.columns.dst);
  return fits(task.rows) && fits(task.columns) && weights && row < std::int64_t{1} << 26 &&
         packs_fit(8 / bytes, {{task.src, bytes}, {task.dst, bytes}});
}

void launch_depthwise(const DepthwiseTask& task, Stream stream) {
  if (task.dtype == DType::bf16) return launch_forward<bf16>(task, stream);
  if (task.dtype == DType::f16) return launch_forward<f16>(task, stream);
  launch_forward<float>(task, stream);
}

void launch_depthwise_backward_data(const DepthwiseTask& task, Stream stream) {
  if (task.dtype == DType::bf16) return launch_backward<bf16>(task, stream);
  if (task.dtype == DType::f16) return launch_backward<f16>(task, stream);
  launch_backward<float>(task, stream);
}

}  // namespace ridgeline::cuda
