// Forward and backward data through local memory, for graphics processors: a work-group of 16 by 16
// computes BLOCK_ROWS pixels by 16 * VECTORS channels. Tap by tap, 16 channels of src of all its
// pixels and their weights are brought to local memory, and every work-item adds the products of
// its pixels and channels, each 16 apart. Neighbours along x read and write neighbouring channels.
#include "kernels/conv_common.cl"

#define SIDE 16
#define DEPTH 16
#define WIDTH (SIDE * VECTORS)
#define ITEM_ROWS (BLOCK_ROWS / SIDE)

__kernel __attribute__((reqd_work_group_size(SIDE, SIDE, 1))) void conv_gather_tile(
    BUFFER(src), BUFFER(weights), BUFFER(dst), BUFFER(bias), const Gather g) {
  POINTER(const NUMBER, src);
  POINTER(const float, weights);
  POINTER(NUMBER, dst);
  POINTER(const float, bias);
  // A column more: what lies one below the other is then in different banks.
  __local float src_tile[DEPTH][BLOCK_ROWS + 1];
  __local float weights_tile[DEPTH][WIDTH];
  const int x = get_local_id(0), y = get_local_id(1);
  const int panel = get_group_id(1), group = get_group_id(2);
  const int pixels = g.images * g.rows.count * g.columns.count;
  const int first_pixel = get_group_id(0) * BLOCK_ROWS + y;
  src += group * g.depth;
  weights += (ulong)group * g.weights_group + (ulong)panel * g.weights_panel;

  // Of the pixels that this work-item loads, and later stores.
  int image[ITEM_ROWS], row[ITEM_ROWS], column[ITEM_ROWS];
#pragma unroll
  for (int i = 0; i < ITEM_ROWS; ++i) {
    const Pixel pixel = pixel_at(&g, min(first_pixel + SIDE * i, pixels - 1));
    image[i] = pixel.image * g.rows.src;
    row[i] = g.rows.origin + pixel.row * g.rows.src_step;
    column[i] = g.columns.origin + pixel.column * g.columns.src_step;
  }

  float sums[ITEM_ROWS][VECTORS];
#pragma unroll
  for (int i = 0; i < ITEM_ROWS; ++i) {
#pragma unroll
    for (int j = 0; j < VECTORS; ++j) sums[i][j] = 0.0f;
  }

  for (int tap = 0; tap < g.rows.taps * g.columns.taps; ++tap) {
    const int tap_row = tap / g.columns.taps, tap_column = tap % g.columns.taps;
    int at[ITEM_ROWS];  // -1: on padding
#pragma unroll
    for (int i = 0; i < ITEM_ROWS; ++i) {
      const int v = row[i] + tap_row * g.rows.tap_step;
      const int u = column[i] + tap_column * g.columns.tap_step;
      const int inside = v >= 0 && v < g.rows.src && u >= 0 && u < g.columns.src;
      at[i] = inside ? ((image[i] + v) * g.columns.src + u) * g.src_stride : -1;
    }
    const int kernel_row = g.rows.first_tap + tap_row * g.rows.kernel_step;
    const int kernel_column = g.columns.first_tap + tap_column * g.columns.kernel_step;
    __global const float* matrix =
        weights + (ulong)(kernel_row * g.kernel_w + kernel_column) * g.weights_tap;
    for (int c = 0; c < g.depth; c += DEPTH) {
#pragma unroll
      for (int i = 0; i < ITEM_ROWS; ++i) {
        src_tile[x][y + SIDE * i] = at[i] >= 0 && c + x < g.depth ? READ(src, at[i] + c + x) : 0.0f;
      }
#pragma unroll
      for (int j = 0; j < VECTORS; ++j) {
        weights_tile[y][x + SIDE * j] =
            c + y < g.depth ? matrix[(ulong)(c + y) * g.weights_pitch + x + SIDE * j] : 0.0f;
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int d = 0; d < DEPTH; ++d) {
        float lanes[VECTORS];
#pragma unroll
        for (int j = 0; j < VECTORS; ++j) lanes[j] = weights_tile[d][x + SIDE * j];
#pragma unroll
        for (int i = 0; i < ITEM_ROWS; ++i) {
          const float number = src_tile[d][y + SIDE * i];
#pragma unroll
          for (int j = 0; j < VECTORS; ++j) sums[i][j] += number * lanes[j];
        }
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
  }

  dst += group * g.width;
  bias += group * g.width;
#pragma unroll
  for (int i = 0; i < ITEM_ROWS; ++i) {
    if (first_pixel + SIDE * i >= pixels) continue;
    __global NUMBER* out = dst + dst_place(&g, pixel_at(&g, first_pixel + SIDE * i));
#pragma unroll
    for (int j = 0; j < VECTORS; ++j) {
      const int channel = panel * WIDTH + x + SIDE * j;
      if (channel >= g.width) continue;
      WRITE(finished(&g, sums[i][j], g.biased ? bias[channel] : 0.0f), out, channel);
    }
  }
}
