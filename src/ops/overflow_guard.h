#pragma once

#include <cstdint>

namespace ridgeline {

struct OpDef;

// Dynamic loss scaling, as torch.amp.GradScaler: after an overflow the scale falls, after a long
// time without one it rises.
struct OverflowGuardAttributes {
  double growth = 2.0, backoff = 0.5;
  std::int64_t interval = 2000;  // steps without an overflow after which the scale rises
};

// Looks at every number of its inputs: where one is not finite, StepState::overflow is set and
// ops that use the new versions write nothing in this step. The values themselves stay as they
// are; the new versions are there to say what comes after the look.
extern const OpDef overflow_guard_op;  // (value...) -> value'...

// What the guard makes of the state once it has looked.
struct StepState;
void note_overflow(const OverflowGuardAttributes& attributes, bool overflow, StepState& state);

}  // namespace ridgeline
