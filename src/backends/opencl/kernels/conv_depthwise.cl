// Convolutions with one channel of src to a group. Channel o of dst sees channel o / multiplier of
// src. A work-item computes 16 channels of one pixel, or fewer at the end.
#include "kernels/conv_weights_common.cl"

// The numbers of up to 16 channels from `channel` on.
inline float16 load_lanes(__global const NUMBER* from, int channel, int end) {
  if (channel + 16 <= end) return READ16(from + channel);
  float lanes[16];
  for (int i = 0; i < 16; ++i) lanes[i] = channel + i < end ? READ(from, channel + i) : 0.0f;
  return vload16(0, lanes);
}

// The same of floats.
inline float16 load_floats(__global const float* from, int channel, int end) {
  if (channel + 16 <= end) return vload16(0, from + channel);
  float lanes[16];
  for (int i = 0; i < 16; ++i) lanes[i] = channel + i < end ? from[channel + i] : 0.0f;
  return vload16(0, lanes);
}

inline float16 load_src(__global const NUMBER* src, int channel, int end, int multiplier) {
  if (multiplier == 1) return load_lanes(src, channel, end);
  float lanes[16];
  for (int i = 0; i < 16; ++i) {
    lanes[i] = channel + i < end ? READ(src, (channel + i) / multiplier) : 0.0f;
  }
  return vload16(0, lanes);
}

// weights[channel][tap] to turned[tap][channel]; a work-item is a channel.
__kernel void depthwise_turn(BUFFER(weights), BUFFER(turned), const int channels, const int taps) {
  POINTER(const NUMBER, weights);
  POINTER(float, turned);
  const int c = get_global_id(0);
  if (c >= channels) return;
  for (int tap = 0; tap < taps; ++tap) turned[tap * channels + c] = READ(weights, c * taps + tap);
}

// Forward. x counts blocks of channels, y pixels of dst; g.width is dst's channels.
__kernel void depthwise(BUFFER(src), BUFFER(turned), BUFFER(dst), BUFFER(bias),
                        const int multiplier, const Gather g) {
  POINTER(const NUMBER, src);
  POINTER(const float, turned);
  POINTER(NUMBER, dst);
  POINTER(const float, bias);
  const int channel = get_global_id(0) * 16;
  if (channel >= g.width || get_global_id(1) >= g.images * g.rows.count * g.columns.count) return;
  const Pixel pixel = pixel_at(&g, get_global_id(1));
  const int top = g.rows.origin + pixel.row * g.rows.src_step;
  const int left = g.columns.origin + pixel.column * g.columns.src_step;
  float16 sum = 0.0f;
  for (int row = 0; row < g.rows.taps; ++row) {
    const int y = top + row * g.rows.tap_step;
    if (y < 0 || y >= g.rows.src) continue;
    for (int column = 0; column < g.columns.taps; ++column) {
      const int x = left + column * g.columns.tap_step;
      if (x < 0 || x >= g.columns.src) continue;
      const int place = ((pixel.image * g.rows.src + y) * g.columns.src + x) * g.src_stride;
      const int tap = row * g.columns.taps + column;
      sum += load_src(src + place, channel, g.width, multiplier) *
             load_floats(turned + tap * g.width, channel, g.width);
    }
  }
  float lanes[16];
  vstore16(sum, 0, lanes);
  dst += dst_place(&g, pixel);
  for (int i = 0; i < 16 && channel + i < g.width; ++i) {
    WRITE(finished(&g, lanes[i], g.biased ? bias[channel + i] : 0.0f), dst, channel + i);
  }
}

// Backward data of one class of pixels; here g.src is diff_dst with g.depth channels, g.dst is
// diff_src. Each channel of diff_src is a sum over its `multiplier` channels of diff_dst.
__kernel void depthwise_data(BUFFER(src), BUFFER(turned), BUFFER(dst), const int multiplier,
                             const Gather g) {
  POINTER(const NUMBER, src);
  POINTER(const float, turned);
  POINTER(NUMBER, dst);
  const int channel = get_global_id(0) * 16;
  if (channel >= g.width || get_global_id(1) >= g.images * g.rows.count * g.columns.count) return;
  const Pixel pixel = pixel_at(&g, get_global_id(1));
  const int top = g.rows.origin + pixel.row * g.rows.src_step;
  const int left = g.columns.origin + pixel.column * g.columns.src_step;
  float16 sum = 0.0f;
  float lanes[16];
  for (int row = 0; row < g.rows.taps; ++row) {
    const int y = top + row * g.rows.tap_step;
    if (y < 0 || y >= g.rows.src) continue;
    for (int column = 0; column < g.columns.taps; ++column) {
      const int x = left + column * g.columns.tap_step;
      if (x < 0 || x >= g.columns.src) continue;
      const int kernel_row = g.rows.first_tap + row * g.rows.kernel_step;
      const int kernel_column = g.columns.first_tap + column * g.columns.kernel_step;
      __global const NUMBER* diff =
          src + ((pixel.image * g.rows.src + y) * g.columns.src + x) * g.src_stride;
      __global const float* matrix =
          turned + (kernel_row * g.kernel_w + kernel_column) * g.depth;
      if (multiplier == 1) {
        sum += load_lanes(diff, channel, g.width) * load_floats(matrix, channel, g.width);
        continue;
      }
      for (int i = 0; i < 16; ++i) {
        lanes[i] = 0.0f;
        for (int m = 0; channel + i < g.width && m < multiplier; ++m) {
          const int o = (channel + i) * multiplier + m;
          lanes[i] += READ(diff, o) * matrix[o];
        }
      }
      sum += vload16(0, lanes);
    }
  }
  vstore16(sum, 0, lanes);
  dst += dst_place(&g, pixel);
  for (int i = 0; i < 16 && channel + i < g.width; ++i) WRITE(lanes[i], dst, channel + i);
}

// The gradient of weights in parts, as the other convolutions have it: partial[part][tap][channel
// of diff_dst]. x counts blocks of channels, y taps, z parts.
__kernel void depthwise_weights(BUFFER(src), BUFFER(diff), BUFFER(partial), const int multiplier,
                                const Weights g) {
  POINTER(const NUMBER, src);
  POINTER(const NUMBER, diff);
  POINTER(float, partial);
  const int channel = get_global_id(0) * 16, tap = get_global_id(1), part = get_global_id(2);
  if (channel >= g.dst_channels) return;
  const int tap_row = tap / g.columns.taps, tap_column = tap % g.columns.taps;
  const int end = part_begin(&g, part + 1);
  float16 sum = 0.0f;
  for (int index = part_begin(&g, part); index < end; ++index) {
    const Line line = line_at(&g, index, tap_row, tap_column);
    for (int k = 0; k < line.count; ++k) {
      sum += load_src(src + line.src + k * line.src_step, channel, g.dst_channels, multiplier) *
             load_lanes(diff + line.diff + k * line.diff_step, channel, g.dst_channels);
    }
  }
  float lanes[16];
  vstore16(sum, 0, lanes);
  partial += (part * g.rows.taps * g.columns.taps + tap) * g.dst_channels;
  for (int i = 0; i < 16 && channel + i < g.dst_channels; ++i) partial[channel + i] = lanes[i];
}

// A work-item adds the parts of one channel and tap.
__kernel void depthwise_sum(BUFFER(partial), BUFFER(diff_weights), const int channels,
                            const int taps, const int parts) {
  POINTER(const float, partial);
  POINTER(NUMBER, diff_weights);
  const int c = get_global_id(0), tap = get_global_id(1);
  if (c >= channels) return;
  float sum = 0.0f;
  for (int part = 0; part < parts; ++part) sum += partial[(part * taps + tap) * channels + c];
  WRITE(sum, diff_weights, c * taps + tap);
}
