#pragma once

namespace ridgeline {

struct OpDef;

extern const OpDef add_op;  // (a, b) -> dst, all of one shape

}  // namespace ridgeline
