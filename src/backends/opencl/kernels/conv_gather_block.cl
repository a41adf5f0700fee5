// Forward and backward data without local memory, for CPUs and small devices: a work-item computes
// BLOCK_ROWS pixels by VECTORS vectors of LANES channels in registers. Weights are read by vectors, src by
// single numbers, which CPUs spread over a vector for nothing.
#include "kernels/conv_common.cl"
#include "kernels/lanes.cl"

#define WIDTH (LANES * VECTORS)

inline void store_pixel(const Gather* g, __global NUMBER* dst, const FLOATS* sums,
                        __global const float* bias, int channel) {
#pragma unroll
  for (int j = 0; j < VECTORS; ++j) {
    const int first = channel + LANES * j;
    if (first + LANES <= g->width && g->activation < 0) {
      FLOATS sum = sums[j];
      if (g->biased) sum += LOAD(bias + first);
      sum = sum < g->low ? (FLOATS)(g->low) : sum;
      WRITE_LANES(sum > g->high ? (FLOATS)(g->high) : sum, dst + first);
    } else {
      float lanes[LANES];
      STORE(sums[j], lanes);
      for (int i = 0; i < LANES && first + i < g->width; ++i) {
        WRITE(finished(g, lanes[i], g->biased ? bias[first + i] : 0.0f), dst, first + i);
      }
    }
  }
}

__kernel void conv_gather_block(BUFFER(src), BUFFER(weights), BUFFER(dst), BUFFER(bias),
                                BUFFER(zeros), const Gather g) {
  POINTER(const NUMBER, src);
  POINTER(const float, weights);
  POINTER(NUMBER, dst);
  POINTER(const float, bias);
  POINTER(const NUMBER, zeros);
  const int group = get_global_id(2), panel = get_global_id(1);
  const int pixels = g.images * g.rows.count * g.columns.count;
  const int first_pixel = get_global_id(0) * BLOCK_ROWS;
  if (first_pixel >= pixels) return;
  src += group * g.depth;
  weights += (ulong)group * g.weights_group + (ulong)panel * g.weights_panel;

  int image[BLOCK_ROWS], row[BLOCK_ROWS], column[BLOCK_ROWS], place[BLOCK_ROWS];
  Pixel pixel = pixel_at(&g, first_pixel);
#pragma unroll
  for (int i = 0; i < BLOCK_ROWS; ++i) {
    // Behind the last pixel that one is computed again, and not stored.
    if (i > 0 && first_pixel + i < pixels) pixel = next_pixel(&g, pixel);
    place[i] = dst_place(&g, pixel);
    image[i] = pixel.image * g.rows.src;
    row[i] = g.rows.origin + pixel.row * g.rows.src_step;
    column[i] = g.columns.origin + pixel.column * g.columns.src_step;
  }

  FLOATS sums[BLOCK_ROWS][VECTORS];
#pragma unroll
  for (int i = 0; i < BLOCK_ROWS; ++i) {
#pragma unroll
    for (int j = 0; j < VECTORS; ++j) sums[i][j] = 0.0f;
  }

  for (int tap = 0; tap < g.rows.taps * g.columns.taps; ++tap) {
    const int tap_row = tap / g.columns.taps, tap_column = tap % g.columns.taps;
    __global const NUMBER* at[BLOCK_ROWS];
    int any = 0;
#pragma unroll
    for (int i = 0; i < BLOCK_ROWS; ++i) {
      const int y = row[i] + tap_row * g.rows.tap_step;
      const int x = column[i] + tap_column * g.columns.tap_step;
      const int inside = y >= 0 && y < g.rows.src && x >= 0 && x < g.columns.src;
      any |= inside;
      at[i] = inside ? src + ((image[i] + y) * g.columns.src + x) * g.src_stride : zeros;
    }
    if (!any) continue;
    const int kernel_row = g.rows.first_tap + tap_row * g.rows.kernel_step;
    const int kernel_column = g.columns.first_tap + tap_column * g.columns.kernel_step;
    __global const float* matrix =
        weights + (ulong)(kernel_row * g.kernel_w + kernel_column) * g.weights_tap;
    for (int c = 0; c < g.depth; ++c) {
      FLOATS lanes[VECTORS];
#pragma unroll
      for (int j = 0; j < VECTORS; ++j) lanes[j] = LOAD(matrix + LANES * j);
#pragma unroll
      for (int i = 0; i < BLOCK_ROWS; ++i) {
        const float number = READ(at[i], c);
#pragma unroll
        for (int j = 0; j < VECTORS; ++j) sums[i][j] += number * lanes[j];
      }
      matrix += g.weights_pitch;
    }
  }

  dst += group * g.width;
  bias += group * g.width;
#pragma unroll
  for (int i = 0; i < BLOCK_ROWS; ++i) {
    if (first_pixel + i >= pixels) break;
    store_pixel(&g, dst + place[i], sums[i], bias, panel * WIDTH);
  }
}
