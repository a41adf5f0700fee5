#pragma once

// What more ranks gain, from the runs of a report.

#include <vector>

#include "analysis/compare/scaling.h"
#include "report/exhibits/runs.h"

namespace ridgeline::report {

struct ScaledRun {
  const RunView* run = nullptr;
  const RunView* base = nullptr;  // with the fewest ranks; the run itself where it has them
  ScalingPoint point;
};

// Of training steps that `bench` measured, on the same machine each, in the order of the runs.
[[nodiscard]] std::vector<ScaledRun> scaled_runs(const Data& data, const Runs& runs);

}  // namespace ridgeline::report
