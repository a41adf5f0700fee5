#pragma once

#include "base/shape.h"

namespace ridgeline {

struct OpDef;

// The same elements in the same row-major order under another shape; flatten is one.
struct ReshapeAttributes {
  Shape shape;
};

extern const OpDef reshape_op;  // (src) -> dst

}  // namespace ridgeline
