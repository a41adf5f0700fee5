#pragma once

#include "plan/plan.h"

namespace ridgeline {

// Moves the steps that only cast or reorder constant weights from `steps` to `setup`.
void set_constants_apart(Plan& plan);

}  // namespace ridgeline
