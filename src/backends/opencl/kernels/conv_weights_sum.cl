// Adds the parts of a gradient of weights, in order, and puts the sums where the op's plain weights
// lie. Of joined groups only the products within one of the op's groups are kept.
#include "kernels/prelude.cl"

typedef struct {
  int groups, joined;  // as in packing
  int parts, taps;
  int src_channels, dst_channels;  // of the op's groups
  int out_pitch;                   // floats of partial from one channel of diff_dst to the next
} Sum;

// A work-item adds all taps of 16 channels of src, of one channel of diff_dst.
__kernel void conv_weights_sum(BUFFER(partial), BUFFER(diff_weights), const Sum s) {
  POINTER(const float, partial);
  POINTER(NUMBER, diff_weights);
  const int c = get_global_id(0) * 16, out = get_global_id(1), group = get_global_id(2);
  if (c >= s.src_channels) return;
  const int channels = min(16, s.src_channels - c);
  const int outputs = s.joined * s.dst_channels;
  const int own = out / s.dst_channels;
  const ulong tap_step = (ulong)outputs * s.out_pitch;
  const ulong part_step = (ulong)s.groups * s.taps * tap_step;
  partial += (ulong)group * s.taps * tap_step + (ulong)out * s.out_pitch +
             own * s.src_channels + c;
  diff_weights += ((ulong)(group * outputs + out) * s.src_channels + c) * s.taps;
  for (int tap = 0; tap < s.taps; ++tap) {
    float sums[16];
    for (int i = 0; i < channels; ++i) sums[i] = partial[i];
    for (int part = 1; part < s.parts; ++part) {
      __global const float* more = partial + part * part_step;
      for (int i = 0; i < channels; ++i) sums[i] += more[i];
    }
    for (int i = 0; i < channels; ++i) WRITE(sums[i], diff_weights, i * s.taps + tap);
    partial += tap_step;
  }
}
