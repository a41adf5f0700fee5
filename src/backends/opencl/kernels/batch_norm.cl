// Batch norm; x counts channels, y rows. Sums come from sums.cl.
#include "kernels/prelude.cl"
#include "kernels/activation.cl"
#include "kernels/state.cl"

__kernel void update_running(BUFFER(running_mean), BUFFER(running_variance), BUFFER(mean),
                             BUFFER(variance), BUFFER(new_mean), BUFFER(new_variance),
                             BUFFER(state), const long channels, const float momentum,
                             const float unbias) {
  const long c = get_global_id(0);
  if (c >= channels) return;
  POINTER(const float, running_mean);
  POINTER(const float, running_variance);
  POINTER(const float, mean);
  POINTER(const float, variance);
  POINTER(float, new_mean);
  POINTER(float, new_variance);
  POINTER(const long, state);
  float m = running_mean[c], v = running_variance[c];
  if (state[OVERFLOW_SEEN] == 0 && momentum != 0.0f) {
    m = (1.0f - momentum) * m + momentum * mean[c];
    v = (1.0f - momentum) * v + momentum * (variance[c] * unbias);
  }
  new_mean[c] = m;
  new_variance[c] = v;
}

// dst = activation((src - mean) / deviation * scale + shift + other). Without a mean: src * scale +
// shift. All but src may be null.
__kernel void norm_apply(ROWS(src), ROWS(other), ROWS(dst), BUFFER(mean), BUFFER(variance),
                         BUFFER(scale), BUFFER(shift), const long width, const long rows,
                         const float epsilon, const int kind, const float slope) {
  const long c = get_global_id(0), r = get_global_id(1);
  if (c >= width || r >= rows) return;
  POINTER(const NUMBER, src);
  POINTER(const NUMBER, other);
  POINTER(NUMBER, dst);
  POINTER(const float, mean);
  POINTER(const float, variance);
  POINTER(const float, scale);
  POINTER(const float, shift);
  float x = READ(src, r * src_stride + c);
  if (mean_base != 0) x = (x - mean[c]) / sqrt(variance[c] + epsilon);
  if (scale_base != 0) x *= scale[c];
  if (shift_base != 0) x += shift[c];
  if (other_base != 0) x += READ(other, r * other_stride + c);
  WRITE(activated(kind, slope, x), dst, r * dst_stride + c);
}

// `share` is 1 / elements of a channel, or 0 where the statistics were constants.
__kernel void norm_backward(ROWS(diff), ROWS(other), ROWS(kept), ROWS(src), ROWS(dst), BUFFER(mean),
                            BUFFER(variance), BUFFER(scale), BUFFER(diff_scale), BUFFER(diff_shift),
                            const long width, const long rows, const float epsilon,
                            const float share, const int kind, const float slope) {
  const long c = get_global_id(0), r = get_global_id(1);
  if (c >= width || r >= rows) return;
  POINTER(const NUMBER, diff);
  POINTER(const NUMBER, other);
  POINTER(const NUMBER, kept);
  POINTER(const NUMBER, src);
  POINTER(NUMBER, dst);
  POINTER(const float, mean);
  POINTER(const float, variance);
  POINTER(const float, scale);
  POINTER(const float, diff_scale);
  POINTER(const float, diff_shift);
  const float inverse = 1.0f / sqrt(variance[c] + epsilon);
  float g = READ(diff, r * diff_stride + c);
  if (other_base != 0) g += READ(other, r * other_stride + c);
  if (kept_base != 0) g = differentiated(kind, slope, g, READ(kept, r * kept_stride + c));
  if (share != 0.0f) {
    const float normal = (READ(src, r * src_stride + c) - mean[c]) * inverse;
    g -= (diff_shift[c] + normal * diff_scale[c]) * share;
  }
  WRITE(g * scale[c] * inverse, dst, r * dst_stride + c);
}
