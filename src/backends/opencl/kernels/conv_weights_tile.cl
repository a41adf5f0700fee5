// The gradient of weights through local memory, for graphics processors: a work-group of 16 by 16
// computes BLOCK_ROWS channels of diff_dst by 16 * VECTORS channels of src, for one tap, group and
// part. 16 pixels at a time are brought to local memory; a work-item adds the products of its
// channels, each 16 apart. Channels behind the last count as zeros and are not stored.
//
// partial[part][group][tap][channel of diff_dst][channel of src]
#include "kernels/conv_weights_common.cl"

#define SIDE 16
#define DEPTH 16
#define WIDTH (SIDE * VECTORS)
#define ITEM_ROWS (BLOCK_ROWS / SIDE)

__kernel __attribute__((reqd_work_group_size(SIDE, SIDE, 1))) void conv_weights_tile(
    BUFFER(src), BUFFER(diff), BUFFER(partial), const Weights g) {
  POINTER(const NUMBER, src);
  POINTER(const NUMBER, diff);
  POINTER(float, partial);
  __local float src_tile[DEPTH][WIDTH];
  __local float diff_tile[DEPTH][BLOCK_ROWS];
  const int x = get_local_id(0), y = get_local_id(1);
  const int taps = g.rows.taps * g.columns.taps;
  const int z = get_group_id(2);
  const int tap = z % taps, group = z / taps % g.groups, part = z / taps / g.groups;
  const int c = get_group_id(0) * WIDTH + x, first_o = get_group_id(1) * BLOCK_ROWS;
  src += group * g.src_channels;
  diff += group * g.dst_channels;

  float sums[ITEM_ROWS][VECTORS];
#pragma unroll
  for (int i = 0; i < ITEM_ROWS; ++i) {
#pragma unroll
    for (int j = 0; j < VECTORS; ++j) sums[i][j] = 0.0f;
  }

  const int tap_row = tap / g.columns.taps, tap_column = tap % g.columns.taps;
  const int end = part_begin(&g, part + 1);
  for (int index = part_begin(&g, part); index < end; ++index) {
    const Line line = line_at(&g, index, tap_row, tap_column);
    for (int first = 0; first < line.count; first += DEPTH) {
      const int k = first + y;
      const int inside = k < line.count;
#pragma unroll
      for (int j = 0; j < VECTORS; ++j) {
        const int channel = c + SIDE * j;
        src_tile[y][x + SIDE * j] = inside && channel < g.src_channels
                                        ? READ(src, line.src + k * line.src_step + channel)
                                        : 0.0f;
      }
#pragma unroll
      for (int i = 0; i < ITEM_ROWS; ++i) {
        const int channel = first_o + x + SIDE * i;
        diff_tile[y][x + SIDE * i] = inside && channel < g.dst_channels
                                         ? READ(diff, line.diff + k * line.diff_step + channel)
                                         : 0.0f;
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int d = 0; d < DEPTH; ++d) {
        float lanes[VECTORS];
#pragma unroll
        for (int j = 0; j < VECTORS; ++j) lanes[j] = src_tile[d][x + SIDE * j];
#pragma unroll
        for (int i = 0; i < ITEM_ROWS; ++i) {
          const float number = diff_tile[d][y + SIDE * i];
#pragma unroll
          for (int j = 0; j < VECTORS; ++j) sums[i][j] += number * lanes[j];
        }
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
  }

#pragma unroll
  for (int i = 0; i < ITEM_ROWS; ++i) {
    const int o = first_o + y + SIDE * i;
    if (o >= g.dst_channels) continue;
    __global float* out = partial + ((ulong)z * g.dst_channels + o) * g.src_channels;
#pragma unroll
    for (int j = 0; j < VECTORS; ++j) {
      if (c + SIDE * j < g.src_channels) out[c + SIDE * j] = sums[i][j];
    }
  }
}
