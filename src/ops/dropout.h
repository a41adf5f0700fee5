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
};

// 1 / (1 - p) where the element stays, 0 where it is dropped.
[[nodiscard]] float dropout_factor(const DropoutAttributes& attributes, std::uint64_t seed,
                                   std::int64_t step, std::int64_t index);

extern const OpDef dropout_op;  // (src) -> dst

}  // namespace ridgeline
