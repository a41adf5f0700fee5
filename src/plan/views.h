#pragma once

#include "plan/plan.h"

namespace ridgeline {

// Lets the inputs of a concatenation be computed straight into slices of its output, and the
// gradients of the inputs be read from slices, wherever every kernel that touches them has the
// trait; removes the copy steps that are then idle.
void join_slices(Plan& plan);

}  // namespace ridgeline
