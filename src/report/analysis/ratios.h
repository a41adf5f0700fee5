#pragma once

// How many times as fast one run is as another that did the same work. Tables, figures and
// sentences ask here, so that all of them say the same.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/compare/pair_judge.h"
#include "report/data.h"

namespace ridgeline::report {

struct Ratio {
  const RunView* of = nullptr;
  const RunView* than = nullptr;
  double speedup = 1.0;                  // above 1: `of` is faster
  double low = 0.0, high = 0.0;          // 99% interval of it
  bool sound = true;                     // else the range of too few values stands for the interval
  std::int64_t samples = 0;              // of the run that has fewer
  Verdict verdict = Verdict::undecided;  // of `of` against `than`
  bool side_by_side = false;             // they took turns in one call
  bool floor_known = false;              // run-to-run variation is in the interval
  std::string basis;                     // "iterations, turn by turn", "iterations", "epochs"
  std::string doubts;                    // "flagged: noisy neighbour"; empty: none
};

[[nodiscard]] inline std::vector<RunId> runs_of(const Ratio& ratio) {
  return {ratio.of->run.id, ratio.than->run.id};
}

inline constexpr const char* kRangeNote =
    "too few epochs or iterations for an interval: the range of what was measured";

inline constexpr const char* kCallsNote =
    "measured in different calls and never repeated: run-to-run variation is not included in the "
    "interval";

// Whether times may be compared: the same work by the same kind of measurement.
[[nodiscard]] bool comparable(const RunView& a, const RunView& b);

// Where a run came from: machine and executor. Runs of the same place and the same work are
// repetitions.
[[nodiscard]] bool same_place(const RunView& a, const RunView& b);
class Ratios {
 public:
  // `data` must outlive it.
  explicit Ratios(const Data& data) : data_(data), judge_(data.store()) {}

  // What `ridgeline compare` says (analysis/compare/pair_judge.h) of the newest repetitions of the
  // two that took turns with each other; where none did, of these two. Nothing where one of them
  // has no times, or where the two are not comparable.
  [[nodiscard]] std::optional<Ratio> of(const RunView& run, const RunView& than);

 private:
  using Pair = std::pair<const RunView*, const RunView*>;
  [[nodiscard]] Pair side_by_side(const RunView& run, const RunView& than);

  const Data& data_;
  PairJudge judge_;
  std::map<std::string, Runs> repetitions_;  // by run_key
  std::map<std::pair<RunId, RunId>, std::optional<Ratio>> known_;
};

// The same pair, told of the other run.
[[nodiscard]] Ratio reversed(const Ratio& ratio);
// The same with the faster run in front, so that it is above 1.
[[nodiscard]] Ratio above_one(const Ratio& ratio);

// "2.31× [2.28–2.34]", "1.4× [1.2–1.6] (flagged: noisy neighbour)"
[[nodiscard]] std::string times_text(const Ratio& ratio);
[[nodiscard]] std::string times_text(const Estimate& ratio);  // without an interval: "2.31×"

// What could make runs of unlike work differ though their work does not: "measured in different
// calls; flagged: noisy neighbour". Empty: nothing is known.
[[nodiscard]] std::string doubts_of(const Runs& runs);
// Whether a ratio of estimates is beyond doubt above 1: by its interval, or where there are doubts
// by more than a machine changes its own speed.
[[nodiscard]] bool is_above_one(const Estimate& ratio, const std::string& doubts);
[[nodiscard]] bool is_below_one(const Estimate& ratio, const std::string& doubts);

// Of each place and work the newest run, in the order of the runs.
[[nodiscard]] Runs newest_of(const Runs& runs);

}  // namespace ridgeline::report
