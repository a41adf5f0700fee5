#pragma once

// How work is counted. A multiply-accumulate is two FLOPs. Elsewhere each addition, multiplication,
// division and comparison that chooses a value is one FLOP, and so is each sqrt, exp, log or tanh;
// moving, converting and indexing are none. A sum over n terms counts n. What is done once for a
// channel or a row, not for each element, is left out.

#include <cstdint>

#include "ops/op.h"

namespace ridgeline {

[[nodiscard]] inline Cost products(std::int64_t macs) { return {.macs = macs, .flops = 2 * macs}; }

[[nodiscard]] inline Cost elementwise(std::int64_t elements, std::int64_t flops_each) {
  return {.macs = 0, .flops = elements * flops_each};
}

[[nodiscard]] inline Cost no_work(const Attributes&, std::span<const TensorSpec>,
                                  std::span<const OutputSpec>) {
  return {};
}

}  // namespace ridgeline
