#pragma once

#include <cstdint>
#include <vector>

#include "base/dtype.h"

namespace ridgeline {

struct OpDef;

// u8 pixels to floats: (pixel / 255 - mean[c]) / deviation[c]. With `flip`, each sample is mirrored
// left to right with probability 1/2, keyed by (seed, epoch, sample number).
struct NormalizeAttributes {
  std::vector<double> mean, deviation;  // one per channel
  bool flip = false;
  DType dtype = DType::f32;  // of dst
};

// Whether a sample is mirrored in an epoch.
[[nodiscard]] bool flips(std::uint64_t seed, std::int64_t epoch, std::int64_t sample);

extern const OpDef normalize_op;  // (pixels u8 [, sample numbers i32, with flip]) -> dst

}  // namespace ridgeline
