// Sums over all rows of each channel, in two steps and a fixed order: parts of the rows, then the
// parts. A gradient passes an add and an activation on its way.
#include "kernels/prelude.cl"
#include "kernels/activation.cl"

// x counts channels, y parts. sums: [parts][channels] of the gradient g; products: the same of
// g * (src - mean) / deviation, or of g * src without a mean.
__kernel void partial_sums(ROWS(diff), ROWS(other), ROWS(kept), ROWS(stored), ROWS(src),
                           BUFFER(mean), BUFFER(variance), BUFFER(sums), BUFFER(products),
                           const long channels, const long rows, const long part_rows,
                           const int kind, const float slope, const float epsilon) {
  const long c = get_global_id(0), part = get_global_id(1);
  if (c >= channels) return;
  POINTER(const NUMBER, diff);
  POINTER(const NUMBER, other);
  POINTER(const NUMBER, kept);
  POINTER(NUMBER, stored);
  POINTER(const NUMBER, src);
  POINTER(const float, mean);
  POINTER(const float, variance);
  POINTER(float, sums);
  POINTER(float, products);
  const float centre = mean_base != 0 ? mean[c] : 0.0f;
  const float inverse = mean_base != 0 ? 1.0f / sqrt(variance[c] + epsilon) : 1.0f;
  const long end = min(rows, (part + 1) * part_rows);
  float sum = 0.0f, product = 0.0f;
  for (long r = part * part_rows; r < end; ++r) {
    float g = READ(diff, r * diff_stride + c);
    if (other_base != 0) g += READ(other, r * other_stride + c);
    if (kept_base != 0) g = differentiated(kind, slope, g, READ(kept, r * kept_stride + c));
    if (stored_base != 0) WRITE(g, stored, r * stored_stride + c);
    sum += g;
    if (src_base != 0) product += g * ((READ(src, r * src_stride + c) - centre) * inverse);
  }
  sums[part * channels + c] = sum;
  if (src_base != 0) products[part * channels + c] = product;
}

// Squared distances from the mean.
__kernel void partial_squares(ROWS(src), BUFFER(mean), BUFFER(sums), const long channels,
                              const long rows, const long part_rows) {
  const long c = get_global_id(0), part = get_global_id(1);
  if (c >= channels) return;
  POINTER(const NUMBER, src);
  POINTER(const float, mean);
  POINTER(float, sums);
  const long end = min(rows, (part + 1) * part_rows);
  const float centre = mean[c];
  float sum = 0.0f;
  for (long r = part * part_rows; r < end; ++r) {
    const float distance = READ(src, r * src_stride + c) - centre;
    sum += distance * distance;
  }
  sums[part * channels + c] = sum;
}

// dst[c] = factor * the sum of the parts; `copy`, where there is one, gets the same.
__kernel void finish_sums(BUFFER(parts), BUFFER(dst), BUFFER(copy), const long channels,
                          const long count, const float factor) {
  const long c = get_global_id(0);
  if (c >= channels) return;
  POINTER(const float, parts);
  POINTER(float, dst);
  POINTER(float, copy);
  float sum = 0.0f;
  for (long i = 0; i < count; ++i) sum += parts[i * channels + c];
  sum *= factor;
  dst[c] = sum;
  if (copy_base != 0) copy[c] = sum;
}

// Sums of products over each image: x counts channels, y samples.
__kernel void image_sums(ROWS(src), ROWS(other), ROWS(dst), const long channels, const long samples,
                         const long pixels) {
  const long c = get_global_id(0), n = get_global_id(1);
  if (c >= channels || n >= samples) return;
  POINTER(const NUMBER, src);
  POINTER(const NUMBER, other);
  POINTER(NUMBER, dst);
  float sum = 0.0f;
  for (long p = n * pixels; p < (n + 1) * pixels; ++p) {
    sum += READ(src, p * src_stride + c) * READ(other, p * other_stride + c);
  }
  WRITE(sum, dst, n * dst_stride + c);
}
