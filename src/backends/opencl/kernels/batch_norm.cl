// Batch norm; x counts channels, y rows. Sums come from sums.cl.
#include "kernels/prelude.cl"
#include "kernels/activation.cl"
#include "kernels/lanes.cl"
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

// Through an activation, ReLU and none as vectors.
inline FLOATS lanes_activated(int kind, float slope, FLOATS x) {
  if (kind < 0) return x;
  if (kind == RELU) return SELECT(x, (FLOATS)0.0f, MASK(x < 0.0f));
  float lanes[LANES];
  STORE(x, lanes);
  for (int i = 0; i < LANES; ++i) lanes[i] = activated(kind, slope, lanes[i]);
  return LOAD(lanes);
}

inline FLOATS lanes_differentiated(int kind, float slope, FLOATS diff, FLOATS kept) {
  if (kind < 0) return diff;
  if (kind == RELU) return SELECT(diff, (FLOATS)0.0f, MASK(kept <= 0.0f));
  float lanes[LANES], values[LANES];
  STORE(diff, lanes);
  STORE(kept, values);
  for (int i = 0; i < LANES; ++i) lanes[i] = differentiated(kind, slope, lanes[i], values[i]);
  return LOAD(lanes);
}

// The kernels below take LANES channels and `stretch` rows to a work-item; x counts blocks of
// channels, y stretches. REQUIRES: a multiple of LANES channels, for dst may be src.

// dst = activation((src - mean) / deviation * scale + shift + other). Without a mean: src * scale +
// shift. All but src may be null.
__kernel void norm_apply(ROWS(src), ROWS(other), ROWS(dst), BUFFER(mean), BUFFER(variance),
                         BUFFER(scale), BUFFER(shift), const long width, const long rows,
                         const long stretch, const float epsilon, const int kind,
                         const float slope) {
  const long c = (long)get_global_id(0) * LANES, first = (long)get_global_id(1) * stretch;
  if (c >= width) return;
  POINTER(const NUMBER, src);
  POINTER(const NUMBER, other);
  POINTER(NUMBER, dst);
  POINTER(const float, mean);
  POINTER(const float, variance);
  POINTER(const float, scale);
  POINTER(const float, shift);
  const FLOATS zeros = (FLOATS)0.0f, ones = (FLOATS)1.0f;
  const FLOATS centre = mean_base != 0 ? LOAD(mean + c) : zeros;
  const FLOATS inverse = mean_base != 0 ? ones / sqrt(LOAD(variance + c) + epsilon) : ones;
  const FLOATS factor = scale_base != 0 ? LOAD(scale + c) : ones;
  const FLOATS term = shift_base != 0 ? LOAD(shift + c) : zeros;
  const long end = min(rows, first + stretch);
  for (long r = first; r < end; ++r) {
    FLOATS x = (READ_LANES(src + r * src_stride + c) - centre) * inverse * factor + term;
    if (other_base != 0) x += READ_LANES(other + r * other_stride + c);
    WRITE_LANES(lanes_activated(kind, slope, x), dst + r * dst_stride + c);
  }
}

// `share` is 1 / elements of a channel, or 0 where the statistics were constants.
__kernel void norm_backward(ROWS(diff), ROWS(other), ROWS(kept), ROWS(src), ROWS(dst), BUFFER(mean),
                            BUFFER(variance), BUFFER(scale), BUFFER(diff_scale), BUFFER(diff_shift),
                            const long width, const long rows, const long stretch,
                            const float epsilon, const float share, const int kind,
                            const float slope) {
  const long c = (long)get_global_id(0) * LANES, first = (long)get_global_id(1) * stretch;
  if (c >= width) return;
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
  const FLOATS inverse = (FLOATS)1.0f / sqrt(LOAD(variance + c) + epsilon);
  const FLOATS factor = LOAD(scale + c) * inverse;
  FLOATS centre = (FLOATS)0.0f, shift = centre, slant = centre;
  if (share != 0.0f) {
    centre = LOAD(mean + c);
    shift = LOAD(diff_shift + c) * share;
    slant = LOAD(diff_scale + c) * inverse * share;
  }
  const long end = min(rows, first + stretch);
  for (long r = first; r < end; ++r) {
    FLOATS g = READ_LANES(diff + r * diff_stride + c);
    if (other_base != 0) g += READ_LANES(other + r * other_stride + c);
    if (kept_base != 0) {
      g = lanes_differentiated(kind, slope, g, READ_LANES(kept + r * kept_stride + c));
    }
    if (share != 0.0f) g -= shift + (READ_LANES(src + r * src_stride + c) - centre) * slant;
    WRITE_LANES(g * factor, dst + r * dst_stride + c);
  }
}
