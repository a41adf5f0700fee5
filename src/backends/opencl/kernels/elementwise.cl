// Work in which every element is alone. x counts channels, y rows.
#include "kernels/prelude.cl"
#include "kernels/activation.cl"

// dst = activation(src + other); other may be null.
__kernel void add_act(ROWS(src), ROWS(other), ROWS(dst), const long width, const long rows,
                      const int kind, const float slope) {
  const long c = get_global_id(0), r = get_global_id(1);
  if (c >= width || r >= rows) return;
  POINTER(const NUMBER, src);
  POINTER(const NUMBER, other);
  POINTER(NUMBER, dst);
  float x = READ(src, r * src_stride + c);
  if (other_base != 0) x += READ(other, r * other_stride + c);
  WRITE(activated(kind, slope, x), dst, r * dst_stride + c);
}

// diff_src = activation'(diff + other, kept).
__kernel void act_backward(ROWS(diff), ROWS(other), ROWS(kept), ROWS(dst), const long width,
                           const long rows, const int kind, const float slope) {
  const long c = get_global_id(0), r = get_global_id(1);
  if (c >= width || r >= rows) return;
  POINTER(const NUMBER, diff);
  POINTER(const NUMBER, other);
  POINTER(const NUMBER, kept);
  POINTER(NUMBER, dst);
  float x = READ(diff, r * diff_stride + c);
  if (other_base != 0) x += READ(other, r * other_stride + c);
  WRITE(differentiated(kind, slope, x, READ(kept, r * kept_stride + c)), dst, r * dst_stride + c);
}

// dst = src * factor; one row of factors serves `shared` rows of src.
__kernel void multiply(ROWS(src), ROWS(factor), ROWS(dst), const long width, const long rows,
                       const long shared) {
  const long c = get_global_id(0), r = get_global_id(1);
  if (c >= width || r >= rows) return;
  POINTER(const NUMBER, src);
  POINTER(const NUMBER, factor);
  POINTER(NUMBER, dst);
  const float by = READ(factor, r / shared * factor_stride + c);
  WRITE(READ(src, r * src_stride + c) * by, dst, r * dst_stride + c);
}
