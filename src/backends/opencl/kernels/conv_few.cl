// Convolutions of few pixels and many channels: there the weights are most of what is read. They stay
// where they lie, and the images are laid out around them.
#include "kernels/conv_common.cl"

// What a tap of a dst pixel sees of a channel.
inline float seen(const Gather* g, __global const float* src, int index, int channel, int tap) {
  const Pixel pixel = pixel_at(g, index);
  const int y = g->rows.origin + pixel.row * g->rows.src_step +
                tap / g->columns.taps * g->rows.tap_step;
  const int x = g->columns.origin + pixel.column * g->columns.src_step +
                tap % g->columns.taps * g->columns.tap_step;
  if (y < 0 || y >= g->rows.src || x < 0 || x >= g->columns.src) return 0.0f;
  return src[((pixel.image * g->rows.src + y) * g->columns.src + x) * g->src_stride + channel];
}

// turned[channel][tap][pixel], with zeros behind the last pixel up to `pitch`. x counts places of
// [channel][tap], y pixels.
__kernel void few_turned(BUFFER(src), BUFFER(turned), const int pitch, const Gather g) {
  const int taps = g.rows.taps * g.columns.taps, k = get_global_id(0), p = get_global_id(1);
  if (k >= g.depth * taps || p >= pitch) return;
  POINTER(const float, src);
  POINTER(float, turned);
  const int inside = p < g.images * g.rows.count * g.columns.count;
  turned[(long)k * pitch + p] = inside ? seen(&g, src, p, k / taps, k % taps) : 0.0f;
}

// laid[pixel][channel][tap], rows `pitch` apart.
__kernel void few_laid(BUFFER(src), BUFFER(laid), const int pitch, const Gather g) {
  const int taps = g.rows.taps * g.columns.taps, k = get_global_id(0), p = get_global_id(1);
  if (k >= g.depth * taps || p >= g.images * g.rows.count * g.columns.count) return;
  POINTER(const float, src);
  POINTER(float, laid);
  laid[(long)p * pitch + k] = seen(&g, src, p, k / taps, k % taps);
}

// dst[pixel][channel] of sums[channel][pixel]. x counts channels, y pixels.
__kernel void few_finish(BUFFER(sums), BUFFER(dst), BUFFER(bias), const int pitch, const Gather g) {
  const int channel = get_global_id(0), p = get_global_id(1);
  if (channel >= g.width || p >= g.images * g.rows.count * g.columns.count) return;
  POINTER(const float, sums);
  POINTER(float, dst);
  POINTER(const float, bias);
  const float sum = sums[(long)channel * pitch + p];
  dst[(long)p * g.dst_stride + channel] = finished(&g, sum, g.biased ? bias[channel] : 0.0f);
}

// diff_src of products[pixel of diff_dst][channel][tap]: what each of its pixels was seen by. `g` is
// the forward's; x counts channels, y pixels of diff_src.
__kernel void few_gathered(BUFFER(products), BUFFER(dst), const int dst_stride, const Gather g) {
  const int channel = get_global_id(0), p = get_global_id(1);
  if (channel >= g.depth || p >= g.images * g.rows.src * g.columns.src) return;
  POINTER(const float, products);
  POINTER(float, dst);
  const int column = p % g.columns.src, row = p / g.columns.src % g.rows.src;
  const int image = p / g.columns.src / g.rows.src, taps = g.rows.taps * g.columns.taps;
  float sum = 0.0f;
  for (int i = 0; i < g.rows.taps; ++i) {
    const int y = row - g.rows.origin - i * g.rows.tap_step, from_row = y / g.rows.src_step;
    if (y < 0 || from_row * g.rows.src_step != y || from_row >= g.rows.count) continue;
    for (int j = 0; j < g.columns.taps; ++j) {
      const int x = column - g.columns.origin - j * g.columns.tap_step;
      const int from_column = x / g.columns.src_step;
      if (x < 0 || from_column * g.columns.src_step != x || from_column >= g.columns.count) continue;
      const long pixel = (image * g.rows.count + from_row) * g.columns.count + from_column;
      sum += products[(pixel * g.depth + channel) * taps + i * g.columns.taps + j];
    }
  }
  dst[(long)p * dst_stride + channel] = sum;
}
