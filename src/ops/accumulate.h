#pragma once

#include <cstdint>

namespace ridgeline {

struct OpDef;

// Adds values to sums that outlive a pass: the gradients of a step that is computed in several
// passes, a part of the batch at a time.
struct AccumulateAttributes {
  bool first = false;  // the sums begin anew
};
extern const OpDef accumulate_op;  // (sum..., value...) -> sum'...

}  // namespace ridgeline
