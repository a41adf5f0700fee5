#pragma once

// What the kernels for larger windows, and for channel counts that no pack divides, share: a thread
// has one channel and some columns, walks down the rows, and holds the rows that the window spans
// in registers. Only .cu files include this.

#include "backends/cuda/depthwise/depthwise_kernels.h"
#include "backends/cuda/depthwise/depthwise_tiles.cuh"

namespace ridgeline::cuda {

inline constexpr int kWalkThreads = 128;
inline constexpr int kWalkChannels = 32;  // of a block, at most

// Blocks on a multiprocessor, as far as registers allow.
constexpr int walk_blocks(int kernel, int stride) {
  const int most = kernel == 7 ? 3 : kernel == 5 ? 4 : 6;
  return stride == 1 ? most : most * 3 / 4;
}

// How the rows and columns of two images meet under a square window with padding kernel / 2.
// Gathering, a step reads `stride` rows of src and finishes one of dst; spreading, it reads one row
// of diff_dst and finishes `stride` of diff_src. A step is counted by its first row of src, or its
// row of diff_dst; `rows` rows of the result are under way, the first of which it finishes.
template <int kernel, int stride, bool spread>
struct WalkWindow {
  static constexpr int kKernel = kernel, kTaps = kernel * kernel, kPad = kernel / 2;
  static constexpr int kReads = spread ? 1 : stride, kDone = spread ? stride : 1;
  static constexpr int kColumns = spread ? 7 * stride : 7;  // of the result, to a thread
  // Gathering: the rows of dst that step i adds to are i + kLow to i + kHigh. Spreading: the first
  // row of diff_dst that adds to row 0 is kLow.
  static constexpr int kLow = -((kernel - 1 - kPad) / stride);
  static constexpr int kHigh = (stride - 1 + kPad) / stride;
  static constexpr int kRows = spread ? kernel : kHigh - kLow + 1;
  static constexpr int kReadColumns =
      spread ? (kColumns - 1 + kPad) / stride - kLow + 1 : stride * (kColumns - 1) + kernel;

  // The taps between the e-th row that a step reads and the j-th row under way, and between columns
  // y and x; outside [0, kernel) where they do not meet.
  static constexpr int row_tap(int e, int j) { return spread ? j : e + kPad - stride * (j + kLow); }
  static constexpr int column_tap(int x, int y) {
    return spread ? x + kPad - stride * (y + kLow) : y - stride * x;
  }
  static constexpr bool is_tap(int tap) { return tap >= 0 && tap < kernel; }

  static __device__ __forceinline__ int first_column_read(int first) {
    return spread ? first / stride + kLow : stride * first - kPad;
  }
};

// The bits of an element, in a register.
template <typename T>
__device__ __forceinline__ std::uint32_t bits_at(const std::byte* address) {
  if constexpr (sizeof(T) == 4) {
    return *reinterpret_cast<const std::uint32_t*>(address);
  } else {
    return *reinterpret_cast<const std::uint16_t*>(address);
  }
}
template <typename T>
__device__ __forceinline__ float number_of(std::uint32_t bits) {
  if constexpr (sizeof(T) == 4) {
    return __uint_as_float(bits);
  } else if constexpr (std::is_same_v<T, bf16>) {
    return __uint_as_float(bits << 16);
  } else {
    return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
  }
}

// One channel of some neighbouring pixels, as they were read; zeros where the mask has no bit.
template <typename T, int count>
struct PixelRow {
  std::uint32_t pixels[count];

  __device__ __forceinline__ void read(const std::byte* first, std::uint32_t pitch,
                                       std::uint32_t inside) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      pixels[i] = 0;
      if ((inside >> i & 1U) != 0) pixels[i] = bits_at<T>(first + i * pitch);
    }
  }
  __device__ __forceinline__ void widen_to(float (&values)[count]) const {
#pragma unroll
    for (int i = 0; i < count; ++i) values[i] = number_of<T>(pixels[i]);
  }
};

// Bit i: column first + i lies on an image of this width.
template <int count>
__device__ __forceinline__ std::uint32_t columns_inside(int first, int width) {
  return rows_inside<count>(first, width);
}

// How the image that is written, or diff_dst for weights, is cut: columns into tiles, rows into
// segments. A segment reads a few rows that are not its own.
struct WalkTiling {
  int tiles, segments, segment_rows;
};

inline WalkTiling walk_tiling(std::int64_t samples, std::int64_t channels, int height, int width,
                              int columns, int kernel, int done) {
  const std::int64_t wanted = std::int64_t{device_limits().multiprocessors} * 256;
  WalkTiling tiling{};
  tiling.tiles = static_cast<int>(ceil_div(width, columns));
  tiling.segments = 1;
  const std::int64_t threads = samples * channels * tiling.tiles;
  while (threads * tiling.segments < wanted &&
         ceil_div(height, tiling.segments + 1) >= 2 * kernel) {
    ++tiling.segments;
  }
  tiling.segment_rows = static_cast<int>(ceil_div(ceil_div(height, tiling.segments), done)) * done;
  tiling.segments = static_cast<int>(ceil_div(height, tiling.segment_rows));
  return tiling;
}

// A thread's part: a tile of columns, then samples, then segments, fastest first, so that the
// threads of a warp are in the same row.
struct WalkSplit {
  Divider by_tiles, by_samples;
  int columns, segment_rows;
};

struct WalkPiece {
  std::int64_t sample;
  int first_column, first_row, end_row;

  __device__ __forceinline__ WalkPiece(const WalkSplit& split, std::uint32_t item, int height) {
    const Divider::Parts tile = split.by_tiles.split(item);
    const Divider::Parts place = split.by_samples.split(tile.quotient);
    sample = place.remainder;
    first_column = static_cast<int>(tile.remainder) * split.columns;
    first_row = static_cast<int>(place.quotient) * split.segment_rows;
    end_row = min(first_row + split.segment_rows, height);
  }
};

// Calls body with the window of a task that is_walked_depthwise.
template <bool spread, typename Body>
void with_walk_window(const DepthwiseTask& task, const Body& body) {
  const bool three = task.rows.kernel == 3, apart = task.rows.stride == 2;
  if (task.rows.kernel == 7) return body(WalkWindow<7, 1, spread>{});
  if (three && apart) return body(WalkWindow<3, 2, spread>{});
  if (three) return body(WalkWindow<3, 1, spread>{});
  if (apart) return body(WalkWindow<5, 2, spread>{});
  body(WalkWindow<5, 1, spread>{});
}

}  // namespace ridgeline::cuda
