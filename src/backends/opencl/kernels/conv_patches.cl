// Writes what the taps of each dst pixel see as one row, patches[pixel][channel][tap], filled up
// with zeros to `pitch`: with few channels a convolution is then a plain matrix product with the
// weights as they lie.
#include "kernels/conv_common.cl"

__kernel void conv_patches(BUFFER(src), BUFFER(patches), const int pitch, const Gather g) {
  POINTER(const NUMBER, src);
  POINTER(NUMBER, patches);
  const int index = get_global_id(0);
  if (index >= g.images * g.rows.count * g.columns.count) return;
  const Pixel pixel = pixel_at(&g, index);
  const int top = g.rows.origin + pixel.row * g.rows.src_step;
  const int left = g.columns.origin + pixel.column * g.columns.src_step;
  const int taps = g.rows.taps * g.columns.taps;
  patches += (ulong)index * pitch;
  for (int row = 0; row < g.rows.taps; ++row) {
    const int y = top + row * g.rows.tap_step;
    for (int column = 0; column < g.columns.taps; ++column) {
      const int x = left + column * g.columns.tap_step;
      const int inside = y >= 0 && y < g.rows.src && x >= 0 && x < g.columns.src;
      const int place = ((pixel.image * g.rows.src + y) * g.columns.src + x) * g.src_stride;
      for (int c = 0; c < g.depth; ++c) {
        const int at = c * taps + row * g.columns.taps + column;
        WRITE(inside ? READ(src, place + c) : 0.0f, patches, at);
      }
    }
  }
  for (int i = g.depth * taps; i < pitch; ++i) WRITE(0.0f, patches, i);
}
