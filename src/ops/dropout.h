#pragma once

#include <cstdint>

namespace ridgeline {

struct OpDef;

// Zeroes elements with the given probability and scales the others by 1 / (1 - probability). The
// mask is a function of (seed, step, layer, logical index); the gradient applies the same op to
// diff_dst, so no mask is stored.
struct DropoutAttributes {
  double probability = 0.5;
  std::uint32_t layer = 0;
  // One draw for all elements of a sample, with the sample's number as the index: stochastic depth.
  bool per_sample = false;
};

// 1 / (1 - p) where the element (per_sample: the sample) with this index stays, 0 where it is
// dropped.
[[nodiscard]] float dropout_factor(const DropoutAttributes& attributes, std::uint64_t seed,
                                   std::int64_t step, std::int64_t index);

extern const OpDef dropout_op;  // (src) -> dst

}  // namespace ridgeline
