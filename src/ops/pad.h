#pragma once

#include <cstdint>

namespace ridgeline {

struct OpDef;

// Zeros around an image, and before and behind its channels. Negative amounts cut off instead, so
// the gradient is the same op with all amounts negated.
struct PadAttributes {
  std::int64_t top = 0, left = 0, bottom = 0, right = 0;
  std::int64_t channels_before = 0, channels_behind = 0;
};

extern const OpDef pad_op;  // (src) -> dst

}  // namespace ridgeline
