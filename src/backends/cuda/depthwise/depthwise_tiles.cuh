#pragma once

// What the fast depthwise kernels share: how an image is cut into strips of rows and segments of
// columns, and how columns of pixels are read. Only .cu files include this.

#include <cstddef>
#include <type_traits>

#include "backends/cuda/depthwise/depthwise_kernels.h"
#include "backends/cuda/words.cuh"
#include "backends/cuda/work_split.cuh"

namespace ridgeline::cuda {

// A thread works on 8 bytes of channels: nine weights for each of them stay in registers.
template <typename T>
inline constexpr int kLaneChannels = 8 / static_cast<int>(sizeof(T));

inline constexpr int kTileThreads = 128;

// Rows of dst that a thread takes at once: each src pixel is then read 1.5 times with stride 1 and
// 1.25 times with stride 2 and, because strips are neighbours, mostly from the cache.
template <int stride>
inline constexpr int kStripRows = stride == 1 ? 4 : 2;

// An image in memory, with a size that may differ from the other image's.
struct Plane {
  void* data;
  std::int64_t stride;  // between pixels; the bytes of several rows must fit 32 bits
  int height, width;
};

inline Plane plane_of(const Rows& rows, int height, int width) {
  return {rows.data, rows.stride, height, width};
}

// The rows of an image are cut into strips, the columns into segments. Neighbouring threads take
// neighbouring channels, then the strip below: strips share rows, which the second one finds in the
// cache.
struct Tiling {
  int strips, segments, segment_width;
};

// A strip's piece: rows from first_row on, columns [first_column, end_column).
struct Piece {
  std::int64_t sample;
  int first_row, first_column, end_column;
};

// Segments as long as there is work for all multiprocessors.
inline Tiling tiling_for(std::int64_t samples, std::int64_t packs, int height, int width,
                         int strip_rows) {
  constexpr int kLongest = 16, kShortest = 4;
  const std::int64_t wanted = std::int64_t{device_limits().multiprocessors} * 384;
  Tiling tiling{};
  tiling.strips = static_cast<int>(ceil_div(height, strip_rows));
  tiling.segments = static_cast<int>(ceil_div(width, kLongest));
  const std::int64_t rows_of_work = samples * tiling.strips * packs;
  while (rows_of_work * tiling.segments < wanted &&
         ceil_div(width, tiling.segments + 1) >= kShortest) {
    ++tiling.segments;
  }
  tiling.segment_width = static_cast<int>(ceil_div(width, tiling.segments));
  tiling.segments = static_cast<int>(ceil_div(width, tiling.segment_width));
  return tiling;
}

// The weights of a thread's channels: memory has [channel][tap], eight bytes of channels are nine
// packs.
template <typename T, int lanes>
__device__ __forceinline__ void load_weights(const void* weights, std::int64_t channel,
                                             bool mirrored, float (&to)[9][lanes]) {
  Pack<T, lanes> packs[9];
  const T* const from = static_cast<const T*>(weights) + channel * 9;
#pragma unroll
  for (int i = 0; i < 9; ++i) packs[i] = load<T, lanes>(from + i * lanes);
#pragma unroll
  for (int tap = 0; tap < 9; ++tap) {
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane) {
      const int near = lane * 9 + tap, far = lane * 9 + 8 - tap;
      const float value = packs[near / lanes].get(near % lanes);
      const float opposite = packs[far / lanes].get(far % lanes);
      to[tap][lane] = mirrored ? opposite : value;
    }
  }
}

// Some rows of one column of pixels, kept as they were read; zeros where the image ends.
template <typename T, int rows>
struct PixelColumn {
  static constexpr int kLanes = kLaneChannels<T>;
  uint2 pixels[rows];

  // `pitch`: bytes between rows.
  __device__ __forceinline__ void read_row(int r, const std::byte* first, std::uint32_t pitch,
                                           std::uint32_t inside) {
    pixels[r] = {0, 0};
    if ((inside >> r & 1U) != 0) pixels[r] = *reinterpret_cast<const uint2*>(first + r * pitch);
  }
  __device__ __forceinline__ void read(const std::byte* first, std::uint32_t pitch,
                                       std::uint32_t inside) {
#pragma unroll
    for (int r = 0; r < rows; ++r) read_row(r, first, pitch, inside);
  }
  // Calls body(row, values) for each row, and reads the same row of another column in its place: it
  // is on its way while the other rows are used.
  template <typename Body>
  __device__ __forceinline__ void use_and_read(const std::byte* first, std::uint32_t pitch,
                                               std::uint32_t inside, const Body& body) {
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      float values[kLanes];
      widen<T>(pixels[r], values);
      read_row(r, first, pitch, inside);
      body(r, values);
    }
  }
};

// Bit r: row first + r lies on an image of so many rows.
template <int rows>
__device__ __forceinline__ std::uint32_t rows_inside(int first, int height) {
  std::uint32_t mask = 0;
#pragma unroll
  for (int r = 0; r < rows; ++r) {
    if (first + r >= 0 && first + r < height) mask |= 1U << r;
  }
  return mask;
}

// Bytes between pixels and between rows.
template <typename T>
__device__ __forceinline__ std::uint32_t pixel_pitch(const Plane& plane) {
  return static_cast<std::uint32_t>(plane.stride * sizeof(T));
}
template <typename T>
__device__ __forceinline__ std::uint32_t row_pitch(const Plane& plane) {
  return pixel_pitch<T>(plane) * static_cast<std::uint32_t>(plane.width);
}

// The pixel's own channels, from which a thread's pointers start.
template <typename T>
__device__ __forceinline__ std::byte* pixel_at(const Plane& plane, std::int64_t sample, int row,
                                               int column, std::int64_t channel) {
  const std::int64_t pixel = (sample * plane.height + row) * plane.width + column;
  return reinterpret_cast<std::byte*>(static_cast<T*>(plane.data) + pixel * plane.stride + channel);
}

}  // namespace ridgeline::cuda
