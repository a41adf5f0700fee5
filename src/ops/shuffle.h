#pragma once

#include <cstdint>

namespace ridgeline {

struct OpDef;

// Channel shuffle of ShuffleNet: channels seen as a matrix of `groups` rows are transposed, so that
// channel j * groups + i of dst is channel i * (C / groups) + j of src. The gradient is the shuffle
// with C / groups groups.
struct ShuffleAttributes {
  std::int64_t groups = 1;
};

extern const OpDef shuffle_op;  // (src) -> dst

}  // namespace ridgeline
