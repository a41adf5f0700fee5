// Dropout: the mask is a function of seed, step, layer and logical index.
#include "kernels/prelude.cl"
#include "kernels/state.cl"
#include "kernels/philox.cl"

__kernel void dropout(ROWS(src), ROWS(dst), BUFFER(state), const long width, const long rows,
                      const long pixels, const int per_sample, const uint layer,
                      const float probability) {
  const long c = get_global_id(0), r = get_global_id(1);
  if (c >= width || r >= rows) return;
  POINTER(const NUMBER, src);
  POINTER(NUMBER, dst);
  POINTER(const ulong, state);
  const long sample = r / pixels;
  const ulong index = per_sample ? sample : (sample * width + c) * pixels + r % pixels;
  const uint4 block = philox(stream_key(state[SEED], STREAM_DROPOUT), index / 4,
                             state[RANDOM_STEP] << 32 | layer);
  // Not a choice among four cases: compilers make a switch of 2 bits of that, which Oclgrind 21.10
  // takes wrongly (docs/backends/opencl.md).
  uint words[4];
  vstore4(block, 0, words);
  const uint bits = words[index & 3];
  const bool dropped = (float)(bits >> 8) * (1.0f / 16777216.0f) < probability;
  const float scale = dropped ? 0.0f : 1.0f / (1.0f - probability);
  WRITE(READ(src, r * src_stride + c) * scale, dst, r * dst_stride + c);
}
