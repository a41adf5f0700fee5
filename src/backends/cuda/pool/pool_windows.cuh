#pragma once

// Where the windows of a pool lie. Only .cu files include this.

#include "backends/cuda/pool/pool_kernels.h"
#include "backends/cuda/work_split.cuh"

namespace ridgeline::cuda {

// The taps [begin, end) of a window that lie on the image, and how many count in an average.
struct WindowTaps {
  int start, begin, end, counted;
};

__device__ __forceinline__ int taps_before(const PoolAxis& axis, int start, int limit) {
  const int room = limit - start;
  if (room <= 0) return 0;
  const int taps = axis.dilation == 1 ? room : (room + axis.dilation - 1) / axis.dilation;
  return min(taps, axis.kernel);
}

__device__ __forceinline__ WindowTaps taps_of(const PoolAxis& axis, int window,
                                              bool count_padding) {
  WindowTaps taps;
  taps.start = window * axis.stride - axis.pad_before;
  taps.begin = taps_before(axis, taps.start, 0);
  taps.end = taps_before(axis, taps.start, axis.size);
  taps.counted = count_padding ? taps_before(axis, taps.start, axis.size + axis.pad_after)
                               : taps.end - taps.begin;
  return taps;
}

// A window's share of an average.
__device__ __forceinline__ float average_factor(const PoolTask& task, int row, int column) {
  const int taps = taps_of(task.rows, row, task.count_padding).counted *
                   taps_of(task.columns, column, task.count_padding).counted;
  return 1.0F / static_cast<float>(taps);
}

}  // namespace ridgeline::cuda
