// Softmax cross-entropy, its gradient and the metrics. Labels are trusted to be classes.
#include "kernels/prelude.cl"
#include "kernels/state.cl"

// Probabilities, and each row's loss.
__kernel void loss_rows(ROWS(logits), ROWS(probabilities), BUFFER(labels), BUFFER(state),
                        BUFFER(losses), const long rows, const long classes, const float smoothing) {
  const long n = get_global_id(0);
  if (n >= rows) return;
  POINTER(const float, logits);
  POINTER(float, probabilities);
  POINTER(const int, labels);
  POINTER(const long, state);
  POINTER(float, losses);
  __global const float *row = logits + n * logits_stride;
  float largest = row[0];
  for (long k = 1; k < classes; ++k) largest = row[k] > largest ? row[k] : largest;
  float sum = 0.0f, differences = 0.0f;
  for (long k = 0; k < classes; ++k) {
    sum += exp(row[k] - largest);
    differences += row[k] - largest;
  }
  const float log_sum = log(sum);
  if (probabilities_base != 0) {
    for (long k = 0; k < classes; ++k) {
      probabilities[n * probabilities_stride + k] = exp(row[k] - largest - log_sum);
    }
  }
  float loss = 0.0f;
  if (n < state[VALID_ROWS]) {
    loss = (1.0f - smoothing) * (log_sum - (row[labels[n]] - largest));
    if (smoothing > 0.0f) loss += smoothing * (log_sum - differences / (float)classes);
  }
  losses[n] = loss;
}

// The mean over the valid rows; sums of 64 rows are added up.
__kernel void loss_mean(BUFFER(losses), BUFFER(state), BUFFER(loss), const long rows,
                        const float weight) {
  if (get_global_id(0) != 0) return;
  POINTER(const float, losses);
  POINTER(const long, state);
  POINTER(float, loss);
  const long valid = min(rows, state[VALID_ROWS]);
  float sum = 0.0f;
  for (long first = 0; first < valid; first += 64) {
    float part = 0.0f;
    for (long n = first; n < min(valid, first + 64); ++n) part += losses[n];
    sum += part;
  }
  loss[0] = valid == 0 ? 0.0f : weight * (sum / (float)valid);
}

__kernel void loss_backward(ROWS(probabilities), ROWS(dst), BUFFER(labels), BUFFER(state),
                            const long rows, const long classes, const float smoothing,
                            const float weight) {
  const long k = get_global_id(0), n = get_global_id(1);
  if (k >= classes || n >= rows) return;
  POINTER(const float, probabilities);
  POINTER(float, dst);
  POINTER(const int, labels);
  POINTER(const ulong, state);
  const long valid = min(rows, (long)state[VALID_ROWS]);
  float diff = 0.0f;
  if (n < valid) {
    const float target = smoothing / (float)classes + (k == labels[n] ? 1.0f - smoothing : 0.0f);
    const float scale = float_of_double(state[LOSS_SCALE]) * weight;
    diff = (probabilities[n * probabilities_stride + k] - target) * scale / (float)valid;
  }
  dst[n * dst_stride + k] = diff;
}

// How many logits come before the label's.
__kernel void label_ranks(ROWS(logits), BUFFER(labels), BUFFER(ranks), const long rows,
                          const long classes) {
  const long n = get_global_id(0);
  if (n >= rows) return;
  POINTER(const float, logits);
  POINTER(const int, labels);
  POINTER(int, ranks);
  __global const float *row = logits + n * logits_stride;
  const int label = labels[n];
  int rank = 0;
  // Rows behind the valid ones may hold anything.
  if (label >= 0 && label < classes) {
    for (int k = 0; k < classes; ++k) {
      const bool beaten = k < label ? row[label] > row[k] : row[label] >= row[k];
      rank += k != label && !beaten ? 1 : 0;
    }
  }
  ranks[n] = rank;
}

__kernel void metrics(BUFFER(totals), BUFFER(loss), BUFFER(ranks), BUFFER(state), BUFFER(dst),
                      const long rows) {
  if (get_global_id(0) != 0) return;
  POINTER(const ulong, totals);
  POINTER(const float, loss);
  POINTER(const int, ranks);
  POINTER(const long, state);
  POINTER(ulong, dst);
  const long valid = min(rows, state[VALID_ROWS]);
  int top1 = 0, top5 = 0;
  for (long n = 0; n < valid; ++n) {
    top1 += ranks[n] < 1 ? 1 : 0;
    top5 += ranks[n] < 5 ? 1 : 0;
  }
  // The product as two floats is exact.
  const float count = (float)valid, product = loss[0] * count;
  const float rest = isfinite(product) ? fma(loss[0], count, -product) : 0.0f;
  dst[0] = add_doubles(add_doubles(totals[0], double_of_float(product)), double_of_float(rest));
  dst[1] = add_doubles(totals[1], double_of_float((float)top1));
  dst[2] = add_doubles(totals[2], double_of_float((float)top5));
  dst[3] = add_doubles(totals[3], double_of_float(count));
}
