// The gradient of weights without local memory: a work-item computes BLOCK_ROWS channels of diff_dst
// by VECTORS vectors of channels of src, for one tap, group and part. The last block of channels
// begins early enough to be whole, and stores only what the block before does not have.
//
// partial[part][group][tap][channel of diff_dst][channel of src]
#include "kernels/conv_weights_common.cl"

#define WIDTH (16 * VECTORS)

__kernel void conv_weights_block(BUFFER(src), BUFFER(diff), BUFFER(partial), const Weights g) {
  POINTER(const NUMBER, src);
  POINTER(const NUMBER, diff);
  POINTER(float, partial);
  const int taps = g.rows.taps * g.columns.taps;
  const int z = get_global_id(2);
  const int tap = z % taps, group = z / taps % g.groups, part = z / taps / g.groups;
  const int own_c = get_global_id(0) * WIDTH, own_o = get_global_id(1) * BLOCK_ROWS;
  if (own_c >= g.src_channels) return;
  const int c = min(own_c, g.src_channels - WIDTH), o = min(own_o, g.dst_channels - BLOCK_ROWS);
  src += group * g.src_channels + c;
  diff += group * g.dst_channels + o;

  float16 sums[BLOCK_ROWS][VECTORS];
#pragma unroll
  for (int i = 0; i < BLOCK_ROWS; ++i) {
#pragma unroll
    for (int j = 0; j < VECTORS; ++j) sums[i][j] = 0.0f;
  }

  const int tap_row = tap / g.columns.taps, tap_column = tap % g.columns.taps;
  const int end = part_begin(&g, part + 1);
  for (int index = part_begin(&g, part); index < end; ++index) {
    const Line line = line_at(&g, index, tap_row, tap_column);
    __global const NUMBER* src_pixel = src + line.src;
    __global const NUMBER* diff_pixel = diff + line.diff;
    for (int k = 0; k < line.count; ++k) {
      float16 lanes[VECTORS];
#pragma unroll
      for (int j = 0; j < VECTORS; ++j) lanes[j] = READ16(src_pixel + 16 * j);
#pragma unroll
      for (int i = 0; i < BLOCK_ROWS; ++i) {
        const float number = READ(diff_pixel, i);
#pragma unroll
        for (int j = 0; j < VECTORS; ++j) sums[i][j] += number * lanes[j];
      }
      src_pixel += line.src_step;
      diff_pixel += line.diff_step;
    }
  }

  partial += ((ulong)z * g.dst_channels + o) * g.src_channels + c;
#pragma unroll
  for (int i = 0; i < BLOCK_ROWS; ++i) {
    if (o + i < own_o) continue;
#pragma unroll
    for (int j = 0; j < VECTORS; ++j) {
      __global float* place = partial + (ulong)i * g.src_channels + 16 * j;
      if (c + 16 * j >= own_c) {
        vstore16(sums[i][j], 0, place);
      } else {
        float lanes[16];
        vstore16(sums[i][j], 0, lanes);
        for (int k = max(own_c - c - 16 * j, 0); k < 16; ++k) place[k] = lanes[k];
      }
    }
  }
}
