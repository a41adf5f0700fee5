// The batch as it arrives, u8 in plain order, becomes the network's first image, nhwc.
#include "kernels/prelude.cl"
#include "kernels/state.cl"
#include "kernels/philox.cl"

typedef struct {
  float mean[8], deviation[8];
} Channels;

__kernel void normalize_pixels(BUFFER(src), ROWS(dst), BUFFER(samples), BUFFER(state),
                               const Channels each, const int channels, const long pixels,
                               const long width, const long sample_stride) {
  const long p = get_global_id(0), n = get_global_id(1);
  if (p >= pixels) return;
  POINTER(const uchar, src);
  POINTER(NUMBER, dst);
  POINTER(const int, samples);
  POINTER(const ulong, state);
  bool mirrored = false;
  if (samples_base != 0) {
    const ulong key = stream_key(state[SEED], STREAM_AUGMENTATION);
    mirrored = (philox(key, (ulong)(long)samples[n], state[EPOCH]).x & 1u) != 0;
  }
  const long x = p % width, from = mirrored ? p - x + width - 1 - x : p;
  for (int c = 0; c < channels; ++c) {
    const float pixel = (float)src[n * sample_stride + c * pixels + from];
    const float normal = (pixel / 255.0f - each.mean[c]) / each.deviation[c];
    WRITE(normal, dst, (n * pixels + p) * dst_stride + c);
  }
}
