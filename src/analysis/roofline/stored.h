#pragma once

// The roofline of runs that the store holds.

#include <span>
#include <string>
#include <vector>

#include "analysis/roofline/points.h"
#include "analysis/roofline/roofs.h"
#include "store/store.h"

namespace ridgeline {

// The median of the measured iterations, by the device's own clock where it has one: waiting for
// each iteration on the host would count as its time. Nothing when there are none.
[[nodiscard]] std::optional<IterationTime> iteration_of(std::span<const Sample> samples);

struct RunRoofline {
  RunRecord run;
  std::vector<StepTime> steps;
  RooflinePoint network;
  double steps_seconds = 0.0;  // the sum of the steps, beside the unprofiled iteration
};

// Runs whose numbers may stand in one table and under the same roofs: one environment, device,
// precision and number of threads.
struct RooflineGroup {
  EnvironmentRecord environment;
  std::string device, precision;
  int threads = 0;
  Roofs roofs;
  std::vector<RunRoofline> runs;
};

// The runs of the last bench call. Throws bad_input when there is none.
[[nodiscard]] std::vector<RunRecord> last_bench_runs(const Store& store);

// Devices of environments that runs need the ceilings of and the store has none of.
struct MissingCeilings {
  EnvironmentRecord environment;
  std::string device;
};
[[nodiscard]] std::vector<MissingCeilings> missing_ceilings(const Store& store,
                                                            std::span<const RunRecord> runs);

struct StoredRooflines {
  std::vector<RooflineGroup> groups;  // in the order of the runs
  // Why runs were left out, one sentence each: a peer has no steps of ours.
  std::vector<std::string> left_out;
};
// Throws bad_input when ceilings were not measured in a run's environment, or when no run has step
// times.
[[nodiscard]] StoredRooflines rooflines_of(const Store& store, std::span<const RunRecord> runs);

// Runs that differ by the batch alone, smallest batch first; at least two batches.
[[nodiscard]] std::vector<std::vector<const RunRoofline*>> trajectories(const RooflineGroup& group);

}  // namespace ridgeline
