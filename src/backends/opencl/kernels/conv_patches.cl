// Writes what the taps of each dst pixel see as one row, patches[pixel][channel][tap], filled up
// with zeros to `pitch`: with few channels a convolution is then a plain matrix product with the
// weights as they lie. A work-item lays out `stretch` neighbouring pixels.
#include "kernels/conv_common.cl"

// All taps lie on the image, as those of most pixels do.
inline void copy_patch(const Gather* g, __global const NUMBER* from, __global NUMBER* patch) {
  const int taps = g->rows.taps * g->columns.taps;
  const int row_step = g->rows.tap_step * g->columns.src * g->src_stride;
  const int column_step = g->columns.tap_step * g->src_stride;
  for (int c = 0; c < g->depth; ++c) {
    __global NUMBER* to = patch + c * taps;
    for (int row = 0; row < g->rows.taps; ++row) {
      __global const NUMBER* place = from + row * row_step + c;
      for (int column = 0; column < g->columns.taps; ++column) {
        WRITE(READ(place, column * column_step), to, column);
      }
      to += g->columns.taps;
    }
  }
}

inline void copy_inside(const Gather* g, __global const NUMBER* image, int top, int left,
                        __global NUMBER* patch) {
  const int taps = g->rows.taps * g->columns.taps;
  for (int row = 0; row < g->rows.taps; ++row) {
    const int y = top + row * g->rows.tap_step;
    for (int column = 0; column < g->columns.taps; ++column) {
      const int x = left + column * g->columns.tap_step;
      const int inside = y >= 0 && y < g->rows.src && x >= 0 && x < g->columns.src;
      const int place = (y * g->columns.src + x) * g->src_stride;
      for (int c = 0; c < g->depth; ++c) {
        const int at = c * taps + row * g->columns.taps + column;
        WRITE(inside ? READ(image, place + c) : 0.0f, patch, at);
      }
    }
  }
}

__kernel void conv_patches(BUFFER(src), BUFFER(patches), const int pitch, const int stretch,
                           const Gather g) {
  POINTER(const NUMBER, src);
  POINTER(NUMBER, patches);
  const int first = get_global_id(0) * stretch;
  const int end = min(first + stretch, g.images * g.rows.count * g.columns.count);
  if (first >= end) return;
  const int last_row = (g.rows.taps - 1) * g.rows.tap_step;
  const int last_column = (g.columns.taps - 1) * g.columns.tap_step;
  const int used = g.depth * g.rows.taps * g.columns.taps;
  Pixel pixel = pixel_at(&g, first);
  for (int index = first; index < end; ++index) {
    const int top = g.rows.origin + pixel.row * g.rows.src_step;
    const int left = g.columns.origin + pixel.column * g.columns.src_step;
    __global const NUMBER* image =
        src + pixel.image * g.rows.src * g.columns.src * g.src_stride;
    __global NUMBER* patch = patches + (ulong)index * pitch;
    if (top >= 0 && top + last_row < g.rows.src && left >= 0 &&
        left + last_column < g.columns.src) {
      copy_patch(&g, image + (top * g.columns.src + left) * g.src_stride, patch);
    } else {
      copy_inside(&g, image, top, left, patch);
    }
    for (int i = used; i < pitch; ++i) WRITE(0.0f, patch, i);
    pixel = next_pixel(&g, pixel);
  }
}
