// Brings weights into the order in which a product reads them, and lays out zeros for pixels on
// padding. Packed weights are floats whatever the op's are.
#include "kernels/prelude.cl"

typedef struct {
  int groups, joined;  // groups of the product, and how many of the op's each consists of
  int depth, width;    // channels of the op's groups: those summed over, those of the result
  int taps, panels, panel_width;
  int group_stride, depth_stride, width_stride;  // floats in the op's weights
  int zeros;
} Pack;

// packed[group][panel][tap][depth][channel of the panel]. Where groups are joined, a channel has
// weights of zero for the channels of other groups. A work-item is one depth of one panel.
__kernel void conv_pack(BUFFER(weights), BUFFER(packed), BUFFER(zeros), const Pack p) {
  POINTER(const NUMBER, weights);
  POINTER(float, packed);
  POINTER(float, zeros);
  const int depth = p.joined * p.depth, width = p.joined * p.width;
  const int d = get_global_id(0), panel = get_global_id(1), group = get_global_id(2);
  if (d >= depth) return;
  if (panel == 0 && group == 0) {
    for (int i = d; i < p.zeros; i += depth) zeros[i] = 0.0f;
  }
  const int own = d / p.depth;
  weights += (ulong)(group * p.joined + own) * p.group_stride +
             (ulong)(d % p.depth) * p.depth_stride;
  packed += ((ulong)(group * p.panels + panel) * p.taps * depth + d) * p.panel_width;
  // All taps of a channel lie together: what they are read from is fetched once.
  const int tap_step = depth * p.panel_width;
  for (int i = 0; i < p.panel_width; ++i) {
    const int channel = panel * p.panel_width + i;
    const int seen = channel < width && channel / p.width == own;
    const int at = (channel - own * p.width) * p.width_stride;
    for (int tap = 0; tap < p.taps; ++tap) {
      packed[tap * tap_step + i] = seen ? READ(weights, at + tap) : 0.0f;
    }
  }
}
