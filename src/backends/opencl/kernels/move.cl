// Elements put elsewhere, and sums of those that came from one place.
#include "kernels/prelude.cl"

// Rows of channels, of 4, 2 bytes and of 1.
__kernel void copy4(ROWS(src), ROWS(dst), const long width, const long rows) {
  const long c = get_global_id(0), r = get_global_id(1);
  if (c >= width || r >= rows) return;
  POINTER(const uint, src);
  POINTER(uint, dst);
  dst[r * dst_stride + c] = src[r * src_stride + c];
}

__kernel void copy2(ROWS(src), ROWS(dst), const long width, const long rows) {
  const long c = get_global_id(0), r = get_global_id(1);
  if (c >= width || r >= rows) return;
  POINTER(const ushort, src);
  POINTER(ushort, dst);
  dst[r * dst_stride + c] = src[r * src_stride + c];
}

__kernel void copy1(ROWS(src), ROWS(dst), const long width, const long rows) {
  const long c = get_global_id(0), r = get_global_id(1);
  if (c >= width || r >= rows) return;
  POINTER(const uchar, src);
  POINTER(uchar, dst);
  dst[r * dst_stride + c] = src[r * src_stride + c];
}

typedef struct {
  long sample, channel, pixel;
} Strides;

// From one layout to another; elements have 4, 2 bytes or 1.
__kernel void reorder(BUFFER(src), BUFFER(dst), const Strides from, const Strides to,
                      const long channels, const long pixels, const int bytes) {
  const long p = get_global_id(0), c = get_global_id(1), n = get_global_id(2);
  if (p >= pixels || c >= channels) return;
  const long at = n * to.sample + c * to.channel + p * to.pixel;
  const long source = n * from.sample + c * from.channel + p * from.pixel;
  if (bytes == 4) {
    POINTER(const uint, src);
    POINTER(uint, dst);
    dst[at] = src[source];
  } else if (bytes == 2) {
    POINTER(const ushort, src);
    POINTER(ushort, dst);
    dst[at] = src[source];
  } else {
    POINTER(const uchar, src);
    POINTER(uchar, dst);
    dst[at] = src[source];
  }
}

__kernel void shuffle_channels(ROWS(src), ROWS(dst), const long width, const long rows,
                               const long groups) {
  const long c = get_global_id(0), r = get_global_id(1);
  if (c >= width || r >= rows) return;
  POINTER(const NUMBER, src);
  POINTER(NUMBER, dst);
  const long from = c % groups * (width / groups) + c / groups;
  WRITE(READ(src, r * src_stride + from), dst, r * dst_stride + c);
}

typedef struct {
  int src_h, src_w, src_c, dst_h, dst_w, dst_c;
  int top, left, before;  // pad
} Images;

__kernel void pad(ROWS(src), ROWS(dst), const Images image, const long rows) {
  const long c = get_global_id(0), r = get_global_id(1);
  if (c >= image.dst_c || r >= rows) return;
  POINTER(const NUMBER, src);
  POINTER(NUMBER, dst);
  const long n = r / (image.dst_h * image.dst_w);
  const int p = (int)(r % (image.dst_h * image.dst_w));
  const int y = p / image.dst_w - image.top, x = p % image.dst_w - image.left;
  const int channel = (int)c - image.before;
  const bool inside = channel >= 0 && channel < image.src_c && y >= 0 && y < image.src_h &&
                      x >= 0 && x < image.src_w;
  const long from = (n * image.src_h + y) * image.src_w + x;
  WRITE(inside ? READ(src, from * src_stride + channel) : 0.0f, dst, r * dst_stride + c);
}

__kernel void resize(ROWS(src), ROWS(dst), const Images image, const long rows) {
  const long c = get_global_id(0), r = get_global_id(1);
  if (c >= image.dst_c || r >= rows) return;
  POINTER(const NUMBER, src);
  POINTER(NUMBER, dst);
  const long n = r / (image.dst_h * image.dst_w), p = r % (image.dst_h * image.dst_w);
  const long y = p / image.dst_w * image.src_h / image.dst_h;
  const long x = p % image.dst_w * image.src_w / image.dst_w;
  const long from = (n * image.src_h + y) * image.src_w + x;
  WRITE(READ(src, from * src_stride + c), dst, r * dst_stride + c);
}

// diff_src is `dst` here: the sum over the pixels that one pixel served.
__kernel void resize_backward(ROWS(src), ROWS(dst), const Images image, const long rows) {
  const long c = get_global_id(0), r = get_global_id(1);
  if (c >= image.dst_c || r >= rows) return;
  POINTER(const NUMBER, src);
  POINTER(NUMBER, dst);
  const long h = image.dst_h, w = image.dst_w;
  const long n = r / (h * w), y = r % (h * w) / w, x = r % w;
  const long last_y = ((y + 1) * image.src_h + h - 1) / h;
  const long last_x = ((x + 1) * image.src_w + w - 1) / w;
  float sum = 0.0f;
  for (long i = (y * image.src_h + h - 1) / h; i < last_y; ++i) {
    for (long j = (x * image.src_w + w - 1) / w; j < last_x; ++j) {
      const long from = (n * image.src_h + i) * image.src_w + j;
      sum += READ(src, from * src_stride + c);
    }
  }
  WRITE(sum, dst, r * dst_stride + c);
}

// Between widths, src and dst as rows: with -DHALF floats become halves, with -DWIDEN halves floats.
__kernel void cast(ROWS(src), ROWS(dst), const long width, const long rows) {
  const long c = get_global_id(0), r = get_global_id(1);
  if (c >= width || r >= rows) return;
#ifdef WIDEN
  POINTER(const half, src);
  POINTER(float, dst);
  dst[r * dst_stride + c] = vload_half(r * src_stride + c, src);
#else
  POINTER(const float, src);
  POINTER(NUMBER, dst);
  WRITE(src[r * src_stride + c], dst, r * dst_stride + c);
#endif
}
