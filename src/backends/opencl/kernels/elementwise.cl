// Work in which every element is alone. x counts channels, y rows.
#include "kernels/prelude.cl"
#include "kernels/activation.cl"

// dst = activation(src + other); other may be null.
__kernel void add_act(ROWS(src), ROWS(other), ROWS(dst), const long width, const long rows,
                      const int kind, const float slope) {
  const long c = get_global_id(0), r = get_global_id(1);
  if (c >= width || r >= rows) return;
  POINTER(const float, src);
  POINTER(const float, other);
  POINTER(float, dst);
  float x = src[r * src_stride + c];
  if (other_base != 0) x += other[r * other_stride + c];
  dst[r * dst_stride + c] = activated(kind, slope, x);
}

// diff_src = activation'(diff + other, kept).
__kernel void act_backward(ROWS(diff), ROWS(other), ROWS(kept), ROWS(dst), const long width,
                           const long rows, const int kind, const float slope) {
  const long c = get_global_id(0), r = get_global_id(1);
  if (c >= width || r >= rows) return;
  POINTER(const float, diff);
  POINTER(const float, other);
  POINTER(const float, kept);
  POINTER(float, dst);
  float x = diff[r * diff_stride + c];
  if (other_base != 0) x += other[r * other_stride + c];
  dst[r * dst_stride + c] = differentiated(kind, slope, x, kept[r * kept_stride + c]);
}

// dst = src * factor; one row of factors serves `shared` rows of src.
__kernel void multiply(ROWS(src), ROWS(factor), ROWS(dst), const long width, const long rows,
                       const long shared) {
  const long c = get_global_id(0), r = get_global_id(1);
  if (c >= width || r >= rows) return;
  POINTER(const float, src);
  POINTER(const float, factor);
  POINTER(float, dst);
  dst[r * dst_stride + c] = src[r * src_stride + c] * factor[r / shared * factor_stride + c];
}
