// Dropout: the mask is a function of seed, step, layer and logical index.
#include "kernels/prelude.cl"
#include "kernels/state.cl"
#include "kernels/philox.cl"

__kernel void dropout(ROWS(src), ROWS(dst), BUFFER(state), const long width, const long rows,
                      const long pixels, const int per_sample, const uint layer,
                      const float probability) {
  const long c = get_global_id(0), r = get_global_id(1);
  if (c >= width || r >= rows) return;
  POINTER(const float, src);
  POINTER(float, dst);
  POINTER(const ulong, state);
  const long sample = r / pixels;
  const ulong index = per_sample ? sample : (sample * width + c) * pixels + r % pixels;
  const uint4 block = philox(stream_key(state[SEED], STREAM_DROPOUT), index / 4,
                             state[RANDOM_STEP] << 32 | layer);
  const uint in_block = (uint)(index & 3);
  const uint bits = in_block == 0   ? block.x
                    : in_block == 1 ? block.y
                    : in_block == 2 ? block.z
                                    : block.w;
  const bool dropped = (float)(bits >> 8) * (1.0f / 16777216.0f) < probability;
  dst[r * dst_stride + c] = src[r * src_stride + c] * (dropped ? 0.0f : 1.0f / (1.0f - probability));
}
