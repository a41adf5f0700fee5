#pragma once

// The Plan of a step on a graphics processor that is not here. It is made from rows that cover the
// same patterns as the cuda backend's, in the same layouts, so that steps, FLOPs, bytes and memory
// come out as there; the kernels can be looked at but not run. Left out are workspaces, which
// depend on the device.

#include "plan/plan.h"
#include "train/step_graph.h"

namespace ridgeline::predict {

// Throws as make_plan does.
[[nodiscard]] Plan dry_gpu_plan(const StepSpec& spec, bool inference);

}  // namespace ridgeline::predict
