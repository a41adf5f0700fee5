#pragma once

#include <cstdint>
#include <vector>

namespace ridgeline {

struct OpDef;

// Concatenation along axis 1 and its counterparts. The planner turns them into views where every
// neighbour can work on slices.
struct SliceAttributes {
  std::int64_t begin = 0, channels = 0;
};

struct SplitAttributes {
  std::vector<std::int64_t> channels;  // of each part; together all of src
};

extern const OpDef concat_op;  // (src...) -> dst
extern const OpDef slice_op;   // (src) -> dst, channels [begin, begin + channels)
extern const OpDef split_op;   // (src) -> part...

}  // namespace ridgeline
