#include "backends/cuda/activation.cuh"
#include "backends/cuda/elementwise/elementwise.cuh"
#include "backends/cuda/pool/pool_windows.cuh"
#include "backends/cuda/sums/sum_parts.h"

namespace ridgeline::cuda {
namespace {

constexpr int kThreads = 256;

// On a multiprocessor; all blocks of a grid run at once.
constexpr int kResidentBlocks = 3;

struct BackwardWork {
  PoolTask task;
  ChannelBlock block;
  std::uint32_t items;  // pixels of diff_src, or cells of two by two
  Divider columns, rows;
  Divider row_stride, column_stride;
};

// Where a thread's gradients go: through the activation, to diff_src and into the bias's sum.
template <typename T, int pack>
struct Results {
  using Elements = Packed<T, pack>;
  const PoolTask& task;
  int channel;
  float sums[pack] = {};

  // What the activation kept of a pixel.
  [[nodiscard]] __device__ __forceinline__ Elements kept_of(std::int64_t pixel) const {
    Elements kept = {};
    if (task.activation != kNoActivation) {
      kept = Elements::load(static_cast<const T*>(task.kept.data) + pixel * task.kept.stride +
                            channel);
    }
    return kept;
  }
  __device__ __forceinline__ void put(std::int64_t pixel, const Elements& kept,
                                      float (&diff)[pack]) {
    if (task.activation != kNoActivation) {
      float values[pack];
#pragma unroll
      for (int i = 0; i < pack; ++i) values[i] = kept.get(i);
      activate_all_backward<T>(task.activation, task.slope, diff, values);
    }
#pragma unroll
    for (int i = 0; i < pack; ++i) sums[i] += diff[i];
    Elements::of(diff).store(static_cast<T*>(task.diff_src.data) + pixel * task.diff_src.stride +
                             channel);
  }
};

// One window's gradient, and where its maximum was.
template <typename T, int pack, bool is_max>
struct Window {
  float diff[pack];
  int place[is_max ? pack : 1];

  __device__ __forceinline__ void read(const PoolTask& task, std::int64_t sample, int row,
                                       int column, int channel) {
    const std::int64_t pixel = (sample * task.rows.windows + row) * task.columns.windows + column;
    const auto values = load<T, pack>(static_cast<const T*>(task.diff_dst.data) +
                                      pixel * task.diff_dst.stride + channel);
#pragma unroll
    for (int i = 0; i < pack; ++i) diff[i] = values.get(i);
    if constexpr (is_max) {
      read_places(task, pixel * task.positions.stride + channel);
    } else {
      const float factor = average_factor(task, row, column);
#pragma unroll
      for (int i = 0; i < pack; ++i) diff[i] *= factor;
    }
  }
  // Adds to a pixel under a tap what the window gives to it.
  __device__ __forceinline__ void give(int tap, float (&to)[pack]) const {
#pragma unroll
    for (int i = 0; i < pack; ++i) {
      if constexpr (is_max) {
        if (place[i] == tap) to[i] += diff[i];
      } else {
        to[i] += diff[i];
      }
    }
  }

 private:
  __device__ __forceinline__ void read_places(const PoolTask& task, std::int64_t at) {
    if (task.position_type == DType::u8) {
      const auto places =
          load<std::uint8_t, pack>(static_cast<const std::uint8_t*>(task.positions.data) + at);
#pragma unroll
      for (int i = 0; i < pack; ++i) place[i] = places.elements[i];
    } else {
#pragma unroll
      for (int i = 0; i < pack; ++i) {
        place[i] = static_cast<const std::int32_t*>(task.positions.data)[at + i];
      }
    }
  }
};

// The windows [first, last] that may cover a pixel.
struct Covers {
  int first, last;
};

__device__ __forceinline__ Covers covers_of(const PoolAxis& axis, const Divider& stride, int at) {
  const int reach = at + axis.pad_before;
  const int before =
      reach - (axis.kernel - 1) * axis.dilation;  // a window must start here or later
  Covers covers;
  covers.first = before <= 0 ? 0 : static_cast<int>(stride.quotient(before + axis.stride - 1));
  covers.last = min(static_cast<int>(stride.quotient(reach)), axis.windows - 1);
  return covers;
}

// The tap with which a window covers a pixel; -1 where it falls between taps.
__device__ __forceinline__ int tap_of(const PoolAxis& axis, int window, int at) {
  const int distance = at + axis.pad_before - window * axis.stride;
  if (axis.dilation == 1) return distance;
  return distance % axis.dilation == 0 ? distance / axis.dilation : -1;
}

// A pixel gathers from all windows that cover it.
template <typename T, int pack, bool is_max>
__device__ __forceinline__ void gather_pixel(const BackwardWork& work, std::int64_t sample, int row,
                                             int column, Results<T, pack>& results) {
  const PoolTask& task = work.task;
  float diff[pack] = {};
  const Covers rows = covers_of(task.rows, work.row_stride, row);
  const Covers columns = covers_of(task.columns, work.column_stride, column);
  for (int r = rows.first; r <= rows.last; ++r) {
    const int row_tap = tap_of(task.rows, r, row);
    if (row_tap < 0) continue;
    for (int c = columns.first; c <= columns.last; ++c) {
      const int column_tap = tap_of(task.columns, c, column);
      if (column_tap < 0) continue;
      Window<T, pack, is_max> window;
      window.read(task, sample, r, c, results.channel);
      window.give(row_tap * task.columns.kernel + column_tap, diff);
    }
  }
  const std::int64_t pixel = (sample * task.rows.size + row) * task.columns.size + column;
  results.put(pixel, results.kept_of(pixel), diff);
}

// A window as it was read: unpacked, four of them would take all registers. Positions are bytes.
template <typename T, int pack, bool is_max>
struct PackedWindow {
  Packed<T, pack> diff;
  std::uint32_t places[pack / 4];
  float factor;  // of an average
  bool there;

  __device__ __forceinline__ void read(const PoolTask& task, std::int64_t sample, int row,
                                       int column, int channel) {
    there = row >= 0 && row < task.rows.windows && column >= 0 && column < task.columns.windows;
    if (!there) return;
    const std::int64_t pixel = (sample * task.rows.windows + row) * task.columns.windows + column;
    diff = Packed<T, pack>::load(static_cast<const T*>(task.diff_dst.data) +
                                 pixel * task.diff_dst.stride + channel);
    if constexpr (is_max) {
      const auto* from = static_cast<const std::uint8_t*>(task.positions.data) +
                         pixel * task.positions.stride + channel;
#pragma unroll
      for (int i = 0; i < pack / 4; ++i) {
        places[i] = reinterpret_cast<const std::uint32_t*>(from)[i];
      }
    } else {
      factor = average_factor(task, row, column);
    }
  }
  __device__ __forceinline__ void give(int tap, float (&to)[pack]) const {
    if (!there) return;
#pragma unroll
    for (int i = 0; i < pack; ++i) {
      if constexpr (is_max) {
        if ((places[i / 4] >> 8 * (i % 4) & 0xFFU) == tap) to[i] += diff.get(i);
      } else {
        to[i] = fmaf(diff.get(i), factor, to[i]);
      }
    }
  }
};

// Stride 2, windows of `size` by `size`: the four pixels that begin at one window's corner are
// covered by that window and, where size is 3, by its neighbours above and to the left. Each window
// is read once for the four.
template <typename T, int pack, int size, bool is_max>
__device__ __forceinline__ void gather_cell(const BackwardWork& work, std::int64_t sample, int row,
                                            int column, Results<T, pack>& results) {
  constexpr int kNear = size == 3 ? 2 : 1;
  const PoolTask& task = work.task;
  const int top = 2 * row - task.rows.pad_before, left = 2 * column - task.columns.pad_before;
  const auto inside = [&](int place) {
    const int h = top + place / 2, w = left + place % 2;
    return h >= 0 && h < task.rows.size && w >= 0 && w < task.columns.size;
  };
  const auto pixel_at = [&](int place) {
    return (sample * task.rows.size + top + place / 2) * task.columns.size + left + place % 2;
  };
  // All loads before the first use.
  PackedWindow<T, pack, is_max> windows[kNear][kNear];
  Packed<T, pack> kept[4];
#pragma unroll
  for (int i = 0; i < kNear; ++i) {
#pragma unroll
    for (int j = 0; j < kNear; ++j) {
      windows[i][j].read(task, sample, row - i, column - j, results.channel);
    }
  }
#pragma unroll
  for (int place = 0; place < 4; ++place) {
    if (inside(place)) kept[place] = results.kept_of(pixel_at(place));
  }
#pragma unroll
  for (int place = 0; place < 4; ++place) {
    if (!inside(place)) continue;
    const int down = place / 2, right = place % 2;
    float diff[pack] = {};
#pragma unroll
    for (int i = 0; i < kNear; ++i) {
#pragma unroll
      for (int j = 0; j < kNear; ++j) {
        const int row_tap = down + 2 * i, column_tap = right + 2 * j;
        if (row_tap < size && column_tap < size) {
          windows[i][j].give(row_tap * size + column_tap, diff);
        }
      }
    }
    results.put(pixel_at(place), kept[place], diff);
  }
}

// Each block's share of the bias's gradient: its threads' sums, added in order.
template <int pack>
__device__ __forceinline__ void store_parts(const BackwardWork& work, const float (&own)[pack]) {
  __shared__ float sums[kThreads * pack];
#pragma unroll
  for (int i = 0; i < pack; ++i) sums[threadIdx.x * pack + i] = own[i];
  __syncthreads();
  const int width = work.block.packs * pack;
  for (int column = static_cast<int>(threadIdx.x); column < width; column += kThreads) {
    float sum = 0.0F;
    for (int lane = 0; lane < work.block.lanes; ++lane) sum += sums[lane * width + column];
    const int channel = static_cast<int>(blockIdx.y) * width + column;
    if (channel < work.task.channels) {
      work.task.parts[blockIdx.x * work.task.channels + channel] = sum;
    }
  }
}

// A thread keeps its channels while it walks over pixels or, where `size` is not 0, cells.
template <typename T, int pack, int size, bool is_max>
__global__ __launch_bounds__(kThreads, kResidentBlocks) void pool_backward(BackwardWork work) {
  const int lane = static_cast<int>(threadIdx.x) / work.block.packs;
  const int own_pack = static_cast<int>(threadIdx.x) % work.block.packs;
  const int channel = (static_cast<int>(blockIdx.y) * work.block.packs + own_pack) * pack;
  Results<T, pack> results{work.task, channel};
  if (lane < work.block.lanes && channel < work.task.channels) {
    const auto lanes = static_cast<std::uint32_t>(work.block.lanes);
    for (std::uint32_t item = blockIdx.x * lanes + lane; item < work.items;
         item += gridDim.x * lanes) {
      const Divider::Parts of_row = work.columns.split(item);
      const Divider::Parts of_sample = work.rows.split(of_row.quotient);
      const auto row = static_cast<int>(of_sample.remainder);
      const auto column = static_cast<int>(of_row.remainder);
      if constexpr (size == 0) {
        gather_pixel<T, pack, is_max>(work, of_sample.quotient, row, column, results);
      } else {
        gather_cell<T, pack, size, is_max>(work, of_sample.quotient, row, column, results);
      }
    }
  }
  if (work.task.diff_bias != nullptr) store_parts<pack>(work, results.sums);
}

// An average of whole images: every pixel gets the same.
struct SpreadWork {
  PoolTask task;
  std::uint32_t items;
  Divider packs, pixels;
};

template <typename T, int pack>
__global__ __launch_bounds__(kThreads) void spread_average(
    const __grid_constant__ SpreadWork work) {
  const std::uint32_t item = blockIdx.x * kThreads + threadIdx.x;
  if (item >= work.items) return;
  const PoolTask& task = work.task;
  const Divider::Parts place = work.packs.split(item);
  const std::int64_t pixel = place.quotient, image = work.pixels.quotient(place.quotient);
  const std::int64_t channel = std::int64_t{place.remainder} * pack;
  const auto diff = Packed<T, pack>::load(static_cast<const T*>(task.diff_dst.data) +
                                          image * task.diff_dst.stride + channel);
  const float factor = average_factor(task, 0, 0);
  float values[pack];
#pragma unroll
  for (int i = 0; i < pack; ++i) values[i] = diff.get(i) * factor;
  Packed<T, pack>::of(values).store(static_cast<T*>(task.diff_src.data) +
                                    pixel * task.diff_src.stride + channel);
}

bool is_whole_average(const PoolTask& task) {
  const auto whole = [](const PoolAxis& axis) {
    return axis.windows == 1 && axis.pad_before == 0 && axis.dilation == 1 &&
           axis.kernel >= axis.size;
  };
  return !task.is_max && whole(task.rows) && whole(task.columns) &&
         task.activation == kNoActivation && task.diff_bias == nullptr;
}

template <typename T, int pack>
void launch_spread(const PoolTask& task, Stream stream) {
  SpreadWork work{};
  work.task = task;
  const std::int64_t pixels = std::int64_t{task.rows.size} * task.columns.size;
  const std::int64_t packs = task.channels / pack, items = task.samples * pixels * packs;
  work.items = static_cast<std::uint32_t>(items);
  work.packs = Divider(packs);
  work.pixels = Divider(pixels);
  const auto blocks = static_cast<unsigned>(ceil_div(items, kThreads));
  spread_average<T, pack><<<blocks, kThreads, 0, stream>>>(work);
  check_launch("pool_backward of whole images");
}

// Cells along an axis; the first begins in the padding.
int cells_of(const PoolAxis& axis) { return (axis.size - 1 + axis.pad_before) / 2 + 1; }

template <typename T, int pack, int size, bool is_max>
void launch_walk(const PoolTask& task, Stream stream) {
  BackwardWork work{};
  work.task = task;
  work.block = channel_block(task.channels / pack, kThreads, 64);
  const std::int64_t rows = size == 0 ? task.rows.size : cells_of(task.rows);
  const std::int64_t columns = size == 0 ? task.columns.size : cells_of(task.columns);
  const std::int64_t items = task.samples * rows * columns;
  work.items = static_cast<std::uint32_t>(items);
  work.columns = Divider(columns);
  work.rows = Divider(rows);
  work.row_stride = Divider(task.rows.stride);
  work.column_stride = Divider(task.columns.stride);
  const std::int64_t resident = std::int64_t{device_limits().multiprocessors} * kResidentBlocks;
  const std::int64_t most = std::clamp<std::int64_t>(resident / work.block.groups, 1, kPoolParts);
  const std::int64_t blocks = std::min(ceil_div(items, work.block.lanes), most);
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(work.block.groups));
  pool_backward<T, pack, size, is_max><<<grid, kThreads, 0, stream>>>(work);
  check_launch("pool_backward");
  if (task.diff_bias == nullptr) return;
  launch_sum_parts(task.parts, static_cast<int>(blocks), task.channels, task.diff_bias, DType::f32,
                   stream);
}

bool has_cells(const PoolTask& task, int size) {
  const auto fits = [&](const PoolAxis& axis) {
    return axis.kernel == size && axis.stride == 2 && axis.dilation == 1;
  };
  return fits(task.rows) && fits(task.columns);
}

template <typename T, int pack>
void launch_any(const PoolTask& task, Stream stream) {
  if (task.is_max) return launch_walk<T, pack, 0, true>(task, stream);
  launch_walk<T, pack, 0, false>(task, stream);
}

template <typename T>
void launch_type(const PoolTask& task, Stream stream) {
  constexpr int kPack = kFullPack<T>, kBytes = static_cast<int>(sizeof(T));
  // Wide positions are read one by one.
  const Rows positions = size_of(task.position_type) == 1 ? task.positions : Rows{};
  const bool packs = packs_fit(
      kPack,
      {{task.diff_dst, kBytes}, {task.diff_src, kBytes}, {task.kept, kBytes}, {positions, 1}});
  const bool whole = is_whole_average(task);
  if (whole && packs) return launch_spread<T, kPack>(task, stream);
  if (whole) return launch_spread<T, 1>(task, stream);
  if (!packs) return launch_any<T, 1>(task, stream);
  const bool bytes = size_of(task.position_type) == 1;
  if (task.is_max && bytes && has_cells(task, 3)) {
    return launch_walk<T, kPack, 3, true>(task, stream);
  }
  if (task.is_max && bytes && has_cells(task, 2)) {
    return launch_walk<T, kPack, 2, true>(task, stream);
  }
  if (!task.is_max && has_cells(task, 2)) return launch_walk<T, kPack, 2, false>(task, stream);
  launch_any<T, kPack>(task, stream);
}

}  // namespace

void launch_pool_backward(const PoolTask& task, Stream stream) {
  switch (task.dtype) {
    case DType::bf16:
      return launch_type<bf16>(task, stream);
    case DType::f16:
      return launch_type<f16>(task, stream);
    default:
      return launch_type<float>(task, stream);
  }
}

}  // namespace ridgeline::cuda
