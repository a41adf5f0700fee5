#pragma once

#include <cstdint>

namespace ridgeline {

struct OpDef;

// Concatenation along axis 1 and its counterpart. The planner turns both into views where every
// neighbour can work on slices.
struct SliceAttributes {
  std::int64_t begin = 0, channels = 0;
};

extern const OpDef concat_op;  // (src...) -> dst
extern const OpDef slice_op;   // (src) -> dst, channels [begin, begin + channels)

}  // namespace ridgeline
