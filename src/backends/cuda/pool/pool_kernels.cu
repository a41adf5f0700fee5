#include "backends/cuda/pool/pool_windows.cuh"
#include "backends/cuda/sums/image_sums_kernels.h"
#include "backends/cuda/words.cuh"

namespace ridgeline::cuda {
namespace {

constexpr int kThreads = 256;

struct PoolWork {
  PoolTask task;
  std::uint32_t items;  // packs of dst
  Divider packs, columns, rows;
};

// The maximum of a window so far and its place, for a pack of channels. The first of equals wins; a
// NaN beats everything and stays, unless another follows.
template <int pack>
struct Maxima {
  float best[pack];
  int place[pack];

  // `first`: the first tap on the image.
  __device__ __forceinline__ explicit Maxima(int first) {
#pragma unroll
    for (int i = 0; i < pack; ++i) {
      best[i] = -INFINITY;
      place[i] = first;
    }
  }
  __device__ __forceinline__ void see(const float (&values)[pack], int tap) {
#pragma unroll
    for (int i = 0; i < pack; ++i) {
      const bool wins = values[i] > best[i] || isnan(values[i]);
      best[i] = wins ? values[i] : best[i];
      place[i] = wins ? tap : place[i];
    }
  }
  template <typename T>
  __device__ __forceinline__ void store_to(const PoolTask& task, std::int64_t pixel, int channel,
                                           T* dst) const {
    Pack<T, pack> result;
#pragma unroll
    for (int i = 0; i < pack; ++i) result.set(i, best[i]);
    store<T, pack>(dst, result);
    if (task.positions.data == nullptr) return;
    const std::int64_t at = pixel * task.positions.stride + channel;
    if (task.position_type == DType::u8) {
      Pack<std::uint8_t, pack> places;
#pragma unroll
      for (int i = 0; i < pack; ++i) places.elements[i] = static_cast<std::uint8_t>(place[i]);
      store<std::uint8_t, pack>(static_cast<std::uint8_t*>(task.positions.data) + at, places);
    } else {
#pragma unroll
      for (int i = 0; i < pack; ++i) {
        static_cast<std::int32_t*>(task.positions.data)[at + i] = place[i];
      }
    }
  }
};

template <int pack>
struct Average {
  float sum[pack] = {};

  __device__ __forceinline__ void see(const float (&values)[pack], int) {
#pragma unroll
    for (int i = 0; i < pack; ++i) sum[i] += values[i];
  }
  template <typename T>
  __device__ __forceinline__ void store_to(T* dst, float divisor) const {
    Pack<T, pack> result;
#pragma unroll
    for (int i = 0; i < pack; ++i) result.set(i, sum[i] / divisor);
    store<T, pack>(dst, result);
  }
};

template <typename T, int pack>
__device__ __forceinline__ void load_numbers(const T* from, float (&to)[pack]) {
  const auto values = load<T, pack>(from);
#pragma unroll
  for (int i = 0; i < pack; ++i) to[i] = values.get(i);
}

// Shows a window's pixels to `sink`, row by row.
template <typename T, int pack, typename Sink>
__device__ __forceinline__ void see_any_window(const PoolTask& task, const T* sample,
                                               const WindowTaps& rows, const WindowTaps& columns,
                                               Sink& sink) {
  for (int row = rows.begin; row < rows.end; ++row) {
    const int h = rows.start + row * task.rows.dilation;
    for (int column = columns.begin; column < columns.end; ++column) {
      const int w = columns.start + column * task.columns.dilation;
      const std::int64_t pixel = std::int64_t{h} * task.columns.size + w;
      float values[pack];
      load_numbers<T, pack>(sample + pixel * task.src.stride, values);
      sink.see(values, row * task.columns.kernel + column);
    }
  }
}

// A window of `size` by `size` neighbouring pixels, full packs, with `outside` beside the image:
// all loads are under way before the first is looked at.
template <typename T, int size>
__device__ __forceinline__ void read_window(const PoolTask& task, const T* sample,
                                            const WindowTaps& rows, const WindowTaps& columns,
                                            float outside, uint4 (&words)[size * size]) {
  const std::uint32_t word = filled_word<T>(outside);
#pragma unroll
  for (int tap = 0; tap < size * size; ++tap) {
    const int h = rows.start + tap / size, w = columns.start + tap % size;
    const bool inside = h >= 0 && h < task.rows.size && w >= 0 && w < task.columns.size;
    const std::int64_t pixel = std::int64_t{h} * task.columns.size + w;
    words[tap] = {word, word, word, word};
    if (inside) words[tap] = *reinterpret_cast<const uint4*>(sample + pixel * task.src.stride);
  }
}

template <typename T, int size, typename Sink>
__device__ __forceinline__ void see_words(const uint4 (&words)[size * size], Sink& sink) {
#pragma unroll
  for (int tap = 0; tap < size * size; ++tap) {
    float values[kFullPack<T>];
    widen<T>(words[tap], values);
    sink.see(values, tap);
  }
}

// The maximum of 16-bit numbers, two at a time: first the maximum, then, from the last tap to the
// first, who is equal to it. `place` gets two numbers of 16 bits. False where that is not enough,
// because a NaN or nothing but minus infinity is there.
template <typename T, int taps>
__device__ __forceinline__ bool find_pair(const std::uint32_t (&words)[taps], std::uint32_t& best,
                                          std::uint32_t& place) {
  best = words[0];
#pragma unroll
  for (int tap = 1; tap < taps; ++tap) best = greater_pair<T>(best, words[tap]);
  place = 0;
#pragma unroll
  for (int tap = taps - 1; tap >= 0; --tap) {
    const std::uint32_t equal = equal_pair<T>(words[tap], best);
    place = (equal & tap * 0x10001U) | (~equal & place);
  }
  const std::uint32_t lowest = filled_word<T>(-INFINITY);
  return equal_pair<T>(best, best) == 0xFFFFFFFFU && equal_pair<T>(best, lowest) == 0;
}

// The same for a full pack; positions are bytes.
template <typename T, int size>
__device__ __forceinline__ bool store_pairs(const PoolTask& task, const uint4 (&words)[size * size],
                                            std::int64_t pixel, int channel, T* dst) {
  constexpr int kTaps = size * size;
  std::uint32_t columns[4][kTaps], best[4], place[4];
#pragma unroll
  for (int tap = 0; tap < kTaps; ++tap) {
    columns[0][tap] = words[tap].x;
    columns[1][tap] = words[tap].y;
    columns[2][tap] = words[tap].z;
    columns[3][tap] = words[tap].w;
  }
  bool enough = true;
#pragma unroll
  for (int i = 0; i < 4; ++i) enough = find_pair<T>(columns[i], best[i], place[i]) && enough;
  if (!enough) return false;
  *reinterpret_cast<uint4*>(dst) = {best[0], best[1], best[2], best[3]};
  if (task.positions.data != nullptr) {
    // The low byte of each number.
    const uint2 bytes = {__byte_perm(place[0], place[1], 0x6420),
                         __byte_perm(place[2], place[3], 0x6420)};
    const std::int64_t at = pixel * task.positions.stride + channel;
    *reinterpret_cast<uint2*>(static_cast<std::uint8_t*>(task.positions.data) + at) = bytes;
  }
  return true;
}

// A thread to a pack of a dst pixel. `size` 0: a window of any form; else packs are full ones.
template <typename T, int pack, int size, bool is_max>
__global__ __launch_bounds__(kThreads) void pool(PoolWork work) {
  const std::uint32_t item = blockIdx.x * kThreads + threadIdx.x;
  if (item >= work.items) return;
  const PoolTask& task = work.task;
  const Divider::Parts of_pixel = work.packs.split(item);
  const Divider::Parts of_row = work.columns.split(of_pixel.quotient);
  const Divider::Parts of_sample = work.rows.split(of_row.quotient);
  const int channel = static_cast<int>(of_pixel.remainder) * pack;
  const auto row = static_cast<int>(of_sample.remainder);
  const auto column = static_cast<int>(of_row.remainder);
  const std::int64_t pixels = std::int64_t{task.rows.size} * task.columns.size;
  const T* const sample = static_cast<const T*>(task.src.data) +
                          of_sample.quotient * pixels * task.src.stride + channel;
  T* const dst = static_cast<T*>(task.dst.data) + of_pixel.quotient * task.dst.stride + channel;
  const WindowTaps rows = taps_of(task.rows, row, task.count_padding);
  const WindowTaps columns = taps_of(task.columns, column, task.count_padding);
  const int first_tap = rows.begin * task.columns.kernel + columns.begin;
  const auto divisor = static_cast<float>(rows.counted * columns.counted);
  if constexpr (size == 0 && is_max) {
    Maxima<pack> maxima(first_tap);
    see_any_window<T, pack>(task, sample, rows, columns, maxima);
    maxima.store_to(task, of_pixel.quotient, channel, dst);
  } else if constexpr (size == 0) {
    Average<pack> average;
    see_any_window<T, pack>(task, sample, rows, columns, average);
    average.store_to(dst, divisor);
  } else {
    uint4 words[size * size];
    read_window<T, size>(task, sample, rows, columns, is_max ? -INFINITY : 0.0F, words);
    if constexpr (is_max) {
      if constexpr (sizeof(T) == 2) {
        if (store_pairs<T, size>(task, words, of_pixel.quotient, channel, dst)) return;
      }
      Maxima<pack> maxima(first_tap);
      see_words<T, size>(words, maxima);
      maxima.store_to(task, of_pixel.quotient, channel, dst);
    } else {
      Average<pack> average;
      see_words<T, size>(words, average);
      average.store_to(dst, divisor);
    }
  }
}

template <typename T, int pack, int size>
void launch_windows(const PoolTask& task, Stream stream) {
  PoolWork work{};
  work.task = task;
  const std::int64_t packs = task.channels / pack;
  const std::int64_t items = task.samples * task.rows.windows * task.columns.windows * packs;
  work.items = static_cast<std::uint32_t>(items);
  work.packs = Divider(packs);
  work.columns = Divider(task.columns.windows);
  work.rows = Divider(task.rows.windows);
  const auto blocks = static_cast<unsigned>(ceil_div(items, kThreads));
  if (task.is_max) {
    pool<T, pack, size, true><<<blocks, kThreads, 0, stream>>>(work);
  } else {
    pool<T, pack, size, false><<<blocks, kThreads, 0, stream>>>(work);
  }
  check_launch("pool");
}

bool is_square(const PoolTask& task, int size) {
  const auto fits = [&](const PoolAxis& axis) { return axis.kernel == size && axis.dilation == 1; };
  return fits(task.rows) && fits(task.columns);
}

bool covers_image(const PoolTask& task) {
  const auto covers = [](const PoolAxis& axis) {
    return axis.windows == 1 && axis.kernel == axis.size && axis.pad_before == 0 &&
           axis.dilation == 1;
  };
  return !task.is_max && covers(task.rows) && covers(task.columns);
}

void launch_images(const PoolTask& task, Stream stream) {
  ImageSums sums;
  sums.dtype = task.dtype;
  sums.src = task.src;
  sums.samples = task.samples;
  sums.pixels = std::int64_t{task.rows.size} * task.columns.size;
  sums.dst = task.dst;
  sums.divisor = static_cast<float>(sums.pixels);
  sums.workspace = task.parts;
  launch_image_sums(sums, stream);
}

template <typename T>
void launch_type(const PoolTask& task, Stream stream) {
  constexpr int kPack = kFullPack<T>, kBytes = static_cast<int>(sizeof(T));
  const auto position_bytes = static_cast<int>(size_of(task.position_type));
  // Wide positions are stored one by one.
  const Rows positions = position_bytes == 1 ? task.positions : Rows{};
  const bool packs = packs_fit(kPack, {{task.src, kBytes}, {task.dst, kBytes}, {positions, 1}});
  if (!packs) return launch_windows<T, 1, 0>(task, stream);
  if (is_square(task, 2)) return launch_windows<T, kPack, 2>(task, stream);
  if (is_square(task, 3)) return launch_windows<T, kPack, 3>(task, stream);
  launch_windows<T, kPack, 0>(task, stream);
}

}  // namespace

std::size_t pool_workspace_bytes(const PoolTask& task) {
  if (!covers_image(task)) return 0;
  return image_sums_bytes(task.dtype, task.samples,
                          std::int64_t{task.rows.size} * task.columns.size, task.channels);
}

void launch_pool(const PoolTask& task, Stream stream) {
  if (covers_image(task)) return launch_images(task, stream);
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
