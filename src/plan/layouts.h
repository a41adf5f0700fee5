#pragma once

// Layouts: makes the kernels of the tiles, gives every value its forms, and inserts a reorder step
// wherever a kernel wants a layout that is not there yet.

#include <vector>

#include "plan/plan.h"
#include "plan/select.h"

namespace ridgeline {

void settle_layouts(Plan& plan, std::vector<Tile> tiles, const PlanOptions& options);

}  // namespace ridgeline
