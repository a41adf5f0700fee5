#include "report/exhibits/scaling.h"

#include <fmt/core.h>

namespace ridgeline::report {

std::vector<ScaledRun> scaled_runs(const Data& data, const Runs& runs) {
  std::vector<ScaledRun> found;
  const Runs measured =
      chosen(runs, [](const RunView& run) { return is_measured(run) && run.rate.has_value(); });
  for (std::size_t machine = 0; machine < data.machines().size(); ++machine) {
    const Runs here = only(measured, [&](const RunView& run) { return run.machine == machine; });
    std::vector<ScalingRun> scaling;
    for (const RunView* run : here) {
      scaling.push_back({run->run.work, run->run.executor,
                         run_series(data.store().samples(run->run.id)),
                         fmt::format("{} {}", run->run.group, run->run.turns)});
    }
    for (const ScalingPoint& point : scaling_points(scaling)) {
      found.push_back({here[point.run], here[point.base], point});
    }
  }
  return found;
}

}  // namespace ridgeline::report
