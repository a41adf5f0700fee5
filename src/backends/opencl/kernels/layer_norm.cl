// Layer norm and group norm: one work-item takes one normalised set, which is `channels` channels
// of `pixels` rows. Layer norm's sets have one row.
#include "kernels/prelude.cl"

// Long rows are added up in pieces, whose sums round less often.
#define PIECE 64

__kernel void layer_norm(ROWS(src), ROWS(dst), BUFFER(scale), BUFFER(shift), BUFFER(mean),
                         BUFFER(inverse), const long sets, const long groups, const long channels,
                         const long pixels, const float epsilon) {
  const long set = get_global_id(0);
  if (set >= sets) return;
  POINTER(const NUMBER, src);
  POINTER(NUMBER, dst);
  POINTER(const float, scale);
  POINTER(const float, shift);
  POINTER(float, mean);
  POINTER(float, inverse);
  const long first_row = set / groups * pixels, first = set % groups * channels;
  const long end = first + channels;
  const float share = 1.0f / ((float)channels * (float)pixels);
  float sum = 0.0f, rest = 0.0f, squares = 0.0f;
  for (long r = first_row; r < first_row + pixels; ++r) {
    for (long piece = first; piece < end; piece += PIECE) {
      float part = 0.0f;
      for (long c = piece; c < min(piece + PIECE, end); ++c) part += READ(src, r * src_stride + c);
      sum += part;
    }
  }
  // What rounding left of the distances' sum, which would be zero, corrects the mean.
  const float near = sum * share;
  for (long r = first_row; r < first_row + pixels; ++r) {
    for (long piece = first; piece < end; piece += PIECE) {
      float part = 0.0f, part_squares = 0.0f;
      for (long c = piece; c < min(piece + PIECE, end); ++c) {
        const float distance = READ(src, r * src_stride + c) - near;
        part += distance;
        part_squares += distance * distance;
      }
      rest += part;
      squares += part_squares;
    }
  }
  const float centre = near + rest * share;
  squares = max(squares - rest * rest * share, 0.0f);
  const float factor = 1.0f / sqrt(squares * share + epsilon);
  if (dst_base != 0) {
    for (long r = first_row; r < first_row + pixels; ++r) {
      for (long c = first; c < first + channels; ++c) {
        const float normal = (READ(src, r * src_stride + c) - centre) * factor;
        WRITE(normal * scale[c] + shift[c], dst, r * dst_stride + c);
      }
    }
  }
  if (mean_base != 0) mean[set] = centre;
  if (inverse_base != 0) inverse[set] = factor;
}

__kernel void layer_norm_backward(ROWS(diff), ROWS(src), ROWS(dst), BUFFER(scale), BUFFER(mean),
                                  BUFFER(inverse), const long sets, const long groups,
                                  const long channels, const long pixels) {
  const long set = get_global_id(0);
  if (set >= sets) return;
  POINTER(const NUMBER, diff);
  POINTER(const NUMBER, src);
  POINTER(NUMBER, dst);
  POINTER(const float, scale);
  POINTER(const float, mean);
  POINTER(const float, inverse);
  const long first_row = set / groups * pixels, first = set % groups * channels;
  const long end = first + channels;
  const float centre = mean[set], factor = inverse[set];
  const float share = 1.0f / ((float)channels * (float)pixels);
  float sum = 0.0f, products = 0.0f;
  for (long r = first_row; r < first_row + pixels; ++r) {
    for (long piece = first; piece < end; piece += PIECE) {
      float part = 0.0f, part_products = 0.0f;
      for (long c = piece; c < min(piece + PIECE, end); ++c) {
        const float g = READ(diff, r * diff_stride + c) * scale[c];
        part += g;
        part_products += g * ((READ(src, r * src_stride + c) - centre) * factor);
      }
      sum += part;
      products += part_products;
    }
  }
  for (long r = first_row; r < first_row + pixels; ++r) {
    for (long c = first; c < first + channels; ++c) {
      const float normal = (READ(src, r * src_stride + c) - centre) * factor;
      const float g = READ(diff, r * diff_stride + c) * scale[c];
      WRITE((g - (sum + normal * products) * share) * factor, dst, r * dst_stride + c);
    }
  }
}

// Parts of diff_scale and diff_shift: x counts channels, y parts of the rows.
__kernel void layer_norm_sums(ROWS(diff), ROWS(src), BUFFER(mean), BUFFER(inverse), BUFFER(sums),
                              BUFFER(products), const long width, const long rows,
                              const long part_rows, const long groups, const long channels,
                              const long pixels) {
  const long c = get_global_id(0), part = get_global_id(1);
  if (c >= width) return;
  POINTER(const NUMBER, diff);
  POINTER(const NUMBER, src);
  POINTER(const float, mean);
  POINTER(const float, inverse);
  POINTER(float, sums);
  POINTER(float, products);
  const long end = min(rows, (part + 1) * part_rows);
  float sum = 0.0f, product = 0.0f;
  for (long r = part * part_rows; r < end; ++r) {
    const long set = r / pixels * groups + c / channels;
    const float g = READ(diff, r * diff_stride + c);
    sum += g;
    product += g * ((READ(src, r * src_stride + c) - mean[set]) * inverse[set]);
  }
  sums[part * width + c] = sum;
  products[part * width + c] = product;
}
