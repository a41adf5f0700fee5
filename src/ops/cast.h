#pragma once

#include "base/dtype.h"

namespace ridgeline {

struct OpDef;

struct CastAttributes {
  DType to = DType::f32;
};

extern const OpDef cast_op;  // (src) -> dst: the nearest numbers of another float type

}  // namespace ridgeline
