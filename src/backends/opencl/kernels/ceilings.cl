// What bounds a device: multiply-adds in registers, and passes over arrays. VECTOR is the type of
// a work-item's values: float16, float, half4.
#ifdef NEEDS_FP64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#ifdef NEEDS_FP16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#endif
#include "kernels/prelude.cl"

// Independent of each other, so that a unit always has one to begin with.
#define CHAINS 12

// `rounds` times CHAINS multiply-adds of a VECTOR for each work-item. The sums are stored, or the
// compiler would leave them out.
__kernel void multiply_adds(BUFFER(sink), const int rounds, const float factor) {
  const VECTOR by = (VECTOR)(ELEMENT)factor, plus = (VECTOR)(ELEMENT)(1.0f - factor);
  VECTOR sums[CHAINS];
#pragma unroll
  for (int i = 0; i < CHAINS; ++i) sums[i] = (VECTOR)(ELEMENT)(get_global_id(0) + i);
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < CHAINS; ++i) sums[i] = sums[i] * by + plus;
  }
  VECTOR sum = sums[0];
#pragma unroll
  for (int i = 1; i < CHAINS; ++i) sum += sums[i];
  POINTER(VECTOR, sink);
  sink[get_global_id(0)] = sum;
}

// A work-item's numbers: `count`, `step` apart, from id * first on. A pass reads b, writes a,
// copies b to a, or sets a = b + factor * c.
#define ITS_NUMBERS(k) for (long k = 0, at = get_global_id(0) * first; k < count; ++k, at += step)

__kernel void read_passes(BUFFER(a), BUFFER(b), BUFFER(c), const long first, const long step,
                          const long count, const int passes, const float factor) {
  POINTER(VECTOR, a);
  POINTER(const VECTOR, b);
  VECTOR sums[4];
  for (int i = 0; i < 4; ++i) sums[i] = (VECTOR)factor;
  for (int pass = 0; pass < passes; ++pass) {
    const long begin = get_global_id(0) * first;
    for (long k = 0; k + 4 <= count; k += 4) {
#pragma unroll
      for (int i = 0; i < 4; ++i) sums[i] += b[begin + (k + i) * step];
    }
  }
  a[get_global_id(0)] = sums[0] + sums[1] + sums[2] + sums[3];
}

__kernel void write_passes(BUFFER(a), BUFFER(b), BUFFER(c), const long first, const long step,
                           const long count, const int passes, const float factor) {
  POINTER(VECTOR, a);
  for (int pass = 0; pass < passes; ++pass) {
    const VECTOR value = (VECTOR)(factor * pass);
    ITS_NUMBERS(k) a[at] = value;
  }
}

__kernel void copy_passes(BUFFER(a), BUFFER(b), BUFFER(c), const long first, const long step,
                          const long count, const int passes, const float factor) {
  POINTER(VECTOR, a);
  POINTER(const VECTOR, b);
  for (int pass = 0; pass < passes; ++pass) {
    ITS_NUMBERS(k) a[at] = b[at];
  }
}

__kernel void triad_passes(BUFFER(a), BUFFER(b), BUFFER(c), const long first, const long step,
                           const long count, const int passes, const float factor) {
  POINTER(VECTOR, a);
  POINTER(const VECTOR, b);
  POINTER(const VECTOR, c);
  for (int pass = 0; pass < passes; ++pass) {
    ITS_NUMBERS(k) a[at] = b[at] + factor * c[at];
  }
}

__kernel void nothing(const int number) {}
