#pragma once

#include <cstdint>

namespace ridgeline {

struct OpDef;

// Normalisation within a sample, with a scale and a shift for each channel. groups == 0: over the
// channels of each pixel (layer norm), statistics (N, 1, H, W) or (N, 1). groups >= 1: over that
// share of the channels and all pixels (group norm), statistics (N, groups). The inverse deviation
// is 1 / √(variance + epsilon).
struct LayerNormAttributes {
  std::int64_t groups = 0;
  double epsilon = 1e-5;
};

extern const OpDef layer_norm_op;           // (src, scale, shift)
                                            //   -> dst, mean, inverse_deviation
extern const OpDef layer_norm_backward_op;  // (diff_dst, src, mean, inverse_deviation, scale)
                                            //   -> diff_src, diff_scale, diff_shift

}  // namespace ridgeline
