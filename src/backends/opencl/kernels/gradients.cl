// What is done to all gradients of a step together: sums over several passes, and the norm that they
// are clipped to. A launch goes through one gradient.
#include "kernels/prelude.cl"
#include "kernels/state.cl"

#define ITS_ELEMENTS(i, elements) \
  for (long i = get_global_id(0); i < (elements); i += get_global_size(0))

// dst = sum + src; `first`: the sums begin anew. Sums are floats.
__kernel void accumulate(BUFFER(sum), BUFFER(src), BUFFER(dst), const long elements,
                         const int first) {
  POINTER(const float, sum);
  POINTER(const NUMBER, src);
  POINTER(float, dst);
  ITS_ELEMENTS(i, elements) dst[i] = first ? READ(src, i) : sum[i] + READ(src, i);
}

// Each work-item's part of the sum of squares.
__kernel void squares(BUFFER(src), BUFFER(parts), const long elements) {
  POINTER(const NUMBER, src);
  POINTER(float, parts);
  float total = 0.0f;
  for (long first = get_global_id(0); first < elements; first += 64 * get_global_size(0)) {
    float sum = 0.0f;
    for (long k = 0; k < 64; ++k) {
      const long i = first + k * get_global_size(0);
      const float x = i < elements ? READ(src, i) : 0.0f;
      sum += x * x;
    }
    total += sum;
  }
  parts[get_global_id(0)] = total;
}

// What gradients are multiplied by. An infinite norm shrinks nothing.
__kernel void clip_factor(BUFFER(parts), BUFFER(state), BUFFER(factor), const long count,
                          const float largest) {
  if (get_global_id(0) != 0) return;
  POINTER(const float, parts);
  POINTER(const ulong, state);
  POINTER(float, factor);
  float total = 0.0f;
  for (long first = 0; first < count; first += 64) {
    float sum = 0.0f;
    for (long i = first; i < min(count, first + 64); ++i) sum += parts[i];
    total += sum;
  }
  const float norm = sqrt(total) / float_of_double(state[GRADIENT_SCALE]);
  factor[0] = isfinite(norm) ? min(1.0f, largest / (norm + 1e-6f)) : 1.0f;
}

__kernel void shrink(BUFFER(src), BUFFER(dst), BUFFER(factor), const long elements) {
  POINTER(const NUMBER, src);
  POINTER(NUMBER, dst);
  POINTER(const float, factor);
  if (factor[0] == 1.0f && src == dst) return;
  ITS_ELEMENTS(i, elements) WRITE(READ(src, i) * factor[0], dst, i);
}
