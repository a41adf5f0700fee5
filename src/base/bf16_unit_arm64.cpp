#include "base/bf16_unit.h"

namespace ridgeline {

// The kernels in bf16 are written for units of x86 processors.
Bf16Units probe_bf16_units() { return {}; }

const char* why_no_bf16_unit() { return "these are units of x86 processors; this one is ARM64"; }

}  // namespace ridgeline
