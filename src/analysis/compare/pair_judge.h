#pragma once

// The verdict on two runs of a store. `compare` and every table, figure and sentence of a report
// ask here, so that all of them say the same of a pair.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/compare/alike.h"
#include "analysis/compare/verdict.h"
#include "store/store.h"

namespace ridgeline {

// Whether it says that something else changed the run's speed: "noisy neighbour", "clock drop".
[[nodiscard]] bool is_disturbance(const Finding& finding);

struct PairVerdict {
  Comparison result;                // of B's time to A's
  bool side_by_side = false;        // they took turns in one call
  bool per_sample = false;          // other batches: times are of one sample, not of an iteration
  std::optional<NoiseFloor> floor;  // of runs in different calls
  std::string basis;                // "iterations, turn by turn", "iterations", "epochs"
  // What could make the runs differ though their executors do not: "flagged: noisy neighbour".
  // Runs that did not take turns must then lie further apart than a machine's own changes reach,
  // or the verdict is undecided. Empty: nothing is known.
  std::string doubts;
};

class PairJudge {
 public:
  // `store` must outlive it. What runs have in the store now is read once.
  explicit PairJudge(const Store& store) : store_(store) {}

  // Measured iterations or, of a training, epochs.
  [[nodiscard]] bool has_times(const RunRecord& run) { return !series(run).seconds.empty(); }

  // Iterations are compared where both have them: turn by turn within one call, else with the noise
  // floor of repeated runs. Trainings are compared by their epochs. Nothing where a run has
  // neither.
  [[nodiscard]] std::optional<PairVerdict> judge(const RunRecord& a, const RunRecord& b,
                                                 VerdictOptions options = {});

 private:
  [[nodiscard]] const RunSeries& series(const RunRecord& run);
  [[nodiscard]] std::optional<LogMedian> median(const RunRecord& run);
  [[nodiscard]] std::vector<LogMedian> repetitions(const RunRecord& run, const RunRecord& other);
  [[nodiscard]] std::optional<NoiseFloor> floor_under(const RunRecord& a, const RunRecord& b);
  [[nodiscard]] std::string doubts_about(const RunRecord& a, const RunRecord& b,
                                         const PairVerdict& pair);
  [[nodiscard]] const std::vector<std::string>& disturbances(RunId run);

  const Store& store_;
  std::optional<std::vector<RunRecord>> complete_;  // runs, the newest first
  std::map<RunId, RunSeries> series_;
  std::map<RunId, std::optional<LogMedian>> medians_;
  std::map<RunId, std::vector<std::string>> disturbances_;
};

}  // namespace ridgeline
