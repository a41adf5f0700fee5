#include "backends/cuda/elementwise/move_kernels.h"
#include "backends/cuda/work_split.cuh"

namespace ridgeline::cuda {
namespace {

constexpr int kThreads = 256;

struct MoveWork {
  MovePixels task;
  std::int64_t src_stride, dst_stride;  // in units
  int src_units, channel_offset;        // of a pixel
  std::uint32_t items;
  Divider units, columns, rows;  // of dst
};

// The pixel of src; negative or too large where there is none.
__device__ __forceinline__ std::int64_t moved(const MoveAxis& axis, std::uint32_t at) {
  if (axis.src == axis.dst) return at + axis.offset;
  return at * axis.src / axis.dst + axis.offset;
}

__device__ __forceinline__ bool inside(std::int64_t at, std::int64_t size) {
  return at >= 0 && at < size;
}

// A thread for each unit of dst: 1 to 16 bytes.
template <typename Unit>
__global__ __launch_bounds__(kThreads) void move_pixels(const __grid_constant__ MoveWork work) {
  const std::uint32_t item = blockIdx.x * kThreads + threadIdx.x;
  if (item >= work.items) return;
  const MovePixels& task = work.task;
  const Divider::Parts unit = work.units.split(item);
  const Divider::Parts column = work.columns.split(unit.quotient);
  const Divider::Parts row = work.rows.split(column.quotient);
  const std::int64_t h = moved(task.rows, row.remainder);
  const std::int64_t w = moved(task.columns, column.remainder);
  const int from = static_cast<int>(unit.remainder) + work.channel_offset;
  Unit value{};
  if (inside(h, task.rows.size) && inside(w, task.columns.size) && inside(from, work.src_units)) {
    const std::int64_t pixel = (row.quotient * task.rows.size + h) * task.columns.size + w;
    value = static_cast<const Unit*>(task.src.data)[pixel * work.src_stride + from];
  }
  static_cast<Unit*>(task.dst.data)[unit.quotient * work.dst_stride + unit.remainder] = value;
}

template <typename Unit>
void launch_units(const MovePixels& task, Stream stream) {
  const int unit = static_cast<int>(sizeof(Unit)) / task.element_bytes;
  MoveWork work{};
  work.task = task;
  work.src_stride = task.src.stride / unit;
  work.dst_stride = task.dst.stride / unit;
  work.src_units = static_cast<int>(task.src.width / unit);
  work.channel_offset = static_cast<int>(task.channel_offset / unit);
  work.units = Divider(task.dst.width / unit);
  work.columns = Divider(task.columns.dst_size);
  work.rows = Divider(task.rows.dst_size);
  const std::int64_t items = task.dst.rows * (task.dst.width / unit);
  work.items = static_cast<std::uint32_t>(items);
  const auto blocks = static_cast<unsigned>(ceil_div(items, kThreads));
  move_pixels<Unit><<<blocks, kThreads, 0, stream>>>(work);
  check_launch("move_pixels");
}

struct ShuffleWork {
  std::int64_t src_stride, dst_stride;
  const void* src;
  void* dst;
  std::uint32_t items;  // packs of dst
  std::uint32_t groups, of_group;
  Divider packs, by_groups;
};

template <typename T, int pack>
__global__ __launch_bounds__(kThreads) void shuffle(const __grid_constant__ ShuffleWork work) {
  const std::uint32_t item = blockIdx.x * kThreads + threadIdx.x;
  if (item >= work.items) return;
  const Divider::Parts of_row = work.packs.split(item);
  const T* const src = static_cast<const T*>(work.src) + of_row.quotient * work.src_stride;
  const std::uint32_t channel = of_row.remainder * pack;
  const Divider::Parts first = work.by_groups.split(channel);
  std::uint32_t group = first.remainder, place = first.quotient;
  Pack<T, pack> values;
#pragma unroll
  for (int i = 0; i < pack; ++i) {
    values.elements[i] = src[group * work.of_group + place];
    if (++group == work.groups) {
      group = 0;
      ++place;
    }
  }
  store<T, pack>(static_cast<T*>(work.dst) + of_row.quotient * work.dst_stride + channel, values);
}

template <typename T, int pack>
void launch_packs(const Shuffle& task, Stream stream) {
  ShuffleWork work{};
  work.src = task.src.data;
  work.src_stride = task.src.stride;
  work.dst = task.dst.data;
  work.dst_stride = task.dst.stride;
  work.groups = static_cast<std::uint32_t>(task.groups);
  work.of_group = static_cast<std::uint32_t>(task.dst.width / task.groups);
  work.packs = Divider(task.dst.width / pack);
  work.by_groups = Divider(task.groups);
  const std::int64_t items = task.dst.rows * (task.dst.width / pack);
  work.items = static_cast<std::uint32_t>(items);
  const auto blocks = static_cast<unsigned>(ceil_div(items, kThreads));
  shuffle<T, pack><<<blocks, kThreads, 0, stream>>>(work);
  check_launch("shuffle");
}

template <typename T>
void launch_shuffled(const Shuffle& task, Stream stream) {
  constexpr int kPack = 16 / static_cast<int>(sizeof(T));
  if (packs_fit(kPack, {{task.dst, task.element_bytes}})) {
    return launch_packs<T, kPack>(task, stream);
  }
  launch_packs<T, 1>(task, stream);
}

}  // namespace

void launch_move_pixels(const MovePixels& task, Stream stream) {
  if (task.dst.rows == 0 || task.dst.width == 0) return;
  const auto fits = [&](int bytes) {
    const int unit = bytes / task.element_bytes;
    return unit >= 1 && task.channel_offset % unit == 0 &&
           packs_fit(unit, {{task.src, task.element_bytes}, {task.dst, task.element_bytes}});
  };
  if (fits(16)) return launch_units<uint4>(task, stream);
  if (fits(8)) return launch_units<uint2>(task, stream);
  if (fits(4)) return launch_units<std::uint32_t>(task, stream);
  launch_units<std::uint16_t>(task, stream);
}

void launch_shuffle(const Shuffle& task, Stream stream) {
  if (task.dst.rows == 0 || task.dst.width == 0) return;
  if (task.element_bytes == 2) return launch_shuffled<std::uint16_t>(task, stream);
  launch_shuffled<std::uint32_t>(task, stream);
}

}  // namespace ridgeline::cuda
