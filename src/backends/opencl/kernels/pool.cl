// Pooling; x counts blocks of LANES channels, y pixels of what is written. Where the last block
// would reach behind the last channel it begins earlier, and computes some channels again.
// REQUIRES: LANES channels.
#include "kernels/prelude.cl"
#include "kernels/activation.cl"
#include "kernels/lanes.cl"

typedef struct {
  int kind;  // 0 max, 1 average, 2 adaptive average
  int src_h, src_w, dst_h, dst_w;
  int kernel_h, kernel_w, stride_h, stride_w, top, left, bottom, right, dilation_h, dilation_w;
  int count_padding, wide_positions;
} Pool;

int taps(int window, int kernel_size, int stride, int before, int dilation, int from, int end) {
  int count = 0;
  for (int k = 0; k < kernel_size; ++k) {
    const int at = window * stride - before + k * dilation;
    count += at >= from && at < end ? 1 : 0;
  }
  return count;
}

// Where an average counts the padding, a window still ends with it.
float pixels_of(const Pool p, int oh, int ow) {
  const int first = p.count_padding ? INT_MIN : 0;
  const int end_h = p.src_h + (p.count_padding ? p.bottom : 0);
  const int end_w = p.src_w + (p.count_padding ? p.right : 0);
  return (float)(taps(oh, p.kernel_h, p.stride_h, p.top, p.dilation_h, first, end_h) *
                 taps(ow, p.kernel_w, p.stride_w, p.left, p.dilation_w, first, end_w));
}

int begin_of(int window, int src, int dst) { return (int)((long)window * src / dst); }
int end_of(int window, int src, int dst) {
  return (int)(((long)(window + 1) * src + dst - 1) / dst);
}

__kernel void pool(ROWS(src), ROWS(dst), ROWS(positions), const Pool p, const long channels,
                   const long rows) {
  const long c = min((long)get_global_id(0) * LANES, channels - LANES), r = get_global_id(1);
  if ((long)get_global_id(0) * LANES >= channels || r >= rows) return;
  POINTER(const NUMBER, src);
  POINTER(NUMBER, dst);
  const int pixel = (int)(r % (p.dst_h * p.dst_w));
  const int oh = pixel / p.dst_w, ow = pixel % p.dst_w;
  src += r / (p.dst_h * p.dst_w) * p.src_h * p.src_w * src_stride + c;
  dst += r * dst_stride + c;
  FLOATS sum = (FLOATS)0.0f;
  if (p.kind == 2) {
    const int top = begin_of(oh, p.src_h, p.dst_h), bottom = end_of(oh, p.src_h, p.dst_h);
    const int left = begin_of(ow, p.src_w, p.dst_w), right = end_of(ow, p.src_w, p.dst_w);
    for (int h = top; h < bottom; ++h) {
      for (int w = left; w < right; ++w) sum += READ_LANES(src + (h * p.src_w + w) * src_stride);
    }
    WRITE_LANES(sum / (float)((bottom - top) * (right - left)), dst);
    return;
  }
  // The first value counts whatever it is, and NaN does.
  FLOATS best = (FLOATS)(-INFINITY);
  INTS position = (INTS)(-1);
  for (int kh = 0; kh < p.kernel_h; ++kh) {
    const int h = oh * p.stride_h - p.top + kh * p.dilation_h;
    if (h < 0 || h >= p.src_h) continue;
    for (int kw = 0; kw < p.kernel_w; ++kw) {
      const int w = ow * p.stride_w - p.left + kw * p.dilation_w;
      if (w < 0 || w >= p.src_w) continue;
      const FLOATS x = READ_LANES(src + (h * p.src_w + w) * src_stride);
      sum += x;
      const INTS taken = MASK(position < 0) | MASK(x > best) | MASK(x != x);
      best = SELECT(best, x, taken);
      position = SELECT(position, (INTS)(kh * p.kernel_w + kw), taken);
    }
  }
  WRITE_LANES(p.kind == 0 ? best : sum / pixels_of(p, oh, ow), dst);
  if (positions_base == 0) return;
  if (p.wide_positions) {
    POINTER(int, positions);
    STORE(position, positions + r * positions_stride + c);
  } else {
    POINTER(uchar, positions);
    STORE(UCHARS_OF(position), positions + r * positions_stride + c);
  }
}

// The gradient of an activation before the pool follows where `kept` is there.
__kernel void pool_backward(ROWS(diff), ROWS(positions), ROWS(kept), ROWS(dst), const Pool p,
                            const long channels, const long rows, const int activation,
                            const float slope) {
  const long c = min((long)get_global_id(0) * LANES, channels - LANES), r = get_global_id(1);
  if ((long)get_global_id(0) * LANES >= channels || r >= rows) return;
  POINTER(const NUMBER, diff);
  __global const int *wide = (__global const int *)(positions_base + positions_offset);
  __global const uchar *narrow = (__global const uchar *)(positions_base + positions_offset);
  POINTER(const NUMBER, kept);
  POINTER(NUMBER, dst);
  const long image = r / (p.src_h * p.src_w) * p.dst_h * p.dst_w;
  const int pixel = (int)(r % (p.src_h * p.src_w));
  const int h = pixel / p.src_w, w = pixel % p.src_w;
  FLOATS sum = (FLOATS)0.0f;
  if (p.kind == 2) {
    const int last_h = end_of(h, p.dst_h, p.src_h), last_w = end_of(w, p.dst_w, p.src_w);
    for (int oh = begin_of(h, p.dst_h, p.src_h); oh < last_h; ++oh) {
      const int height = end_of(oh, p.src_h, p.dst_h) - begin_of(oh, p.src_h, p.dst_h);
      for (int ow = begin_of(w, p.dst_w, p.src_w); ow < last_w; ++ow) {
        const int width = end_of(ow, p.src_w, p.dst_w) - begin_of(ow, p.src_w, p.dst_w);
        const long at = image + oh * p.dst_w + ow;
        sum += READ_LANES(diff + at * diff_stride + c) / (float)(height * width);
      }
    }
  } else {
    for (int kh = 0; kh < p.kernel_h; ++kh) {
      const int y = h + p.top - kh * p.dilation_h, oh = y / p.stride_h;
      if (y < 0 || oh * p.stride_h != y || oh >= p.dst_h) continue;
      for (int kw = 0; kw < p.kernel_w; ++kw) {
        const int x = w + p.left - kw * p.dilation_w, ow = x / p.stride_w;
        if (x < 0 || ow * p.stride_w != x || ow >= p.dst_w) continue;
        const long at = image + oh * p.dst_w + ow;
        const FLOATS g = READ_LANES(diff + at * diff_stride + c);
        if (p.kind == 1) {
          sum += g / pixels_of(p, oh, ow);
        } else {
          const long place = at * positions_stride + c;
          const INTS position = p.wide_positions ? LOAD(wide + place) : INTS_OF(LOAD(narrow + place));
          sum += SELECT((FLOATS)0.0f, g, MASK(position == kh * p.kernel_w + kw));
        }
      }
    }
  }
  dst += r * dst_stride + c;
  if (kept_base == 0) {
    WRITE_LANES(sum, dst);
    return;
  }
  const FLOATS seen = READ_LANES(kept + r * kept_stride + c);
  if (activation == RELU) {
    WRITE_LANES(SELECT(sum, (FLOATS)0.0f, MASK(seen <= 0.0f)), dst);
    return;
  }
  float sums[LANES], values[LANES];
  STORE(sum, sums);
  STORE(seen, values);
  for (int i = 0; i < LANES; ++i) {
    WRITE(differentiated(activation, slope, sums[i], values[i]), dst, i);
  }
}
