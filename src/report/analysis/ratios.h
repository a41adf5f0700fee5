#pragma once

// How many times as fast one run is as another that did the same work. Tables, figures and
// sentences ask here, so that all of them say the same.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lab/compare/verdict.h"
#include "report/data.h"

namespace ridgeline::report {

struct Ratio {
  const RunView* of = nullptr;
  const RunView* than = nullptr;
  double speedup = 1.0;                  // above 1: `of` is faster
  double low = 0.0, high = 0.0;          // 99% interval of it
  bool sound = true;                     // else the range of too few values stands for the interval
  Verdict verdict = Verdict::undecided;  // of `of` against `than`
  bool side_by_side = false;             // measured in one call
  bool floor_known = false;              // how much runs differ by themselves is in the interval
  std::string basis;                     // "iterations, turn by turn", "iterations", "epochs"
};

inline constexpr const char* kRangeNote =
    "too few epochs or iterations for an interval: the range of what was measured";

inline constexpr const char* kCallsNote =
    "measured in different calls and never repeated: how much runs differ by themselves is not "
    "known, and the interval does not hold it";

// Whether times may be compared: the same work by the same kind of measurement.
[[nodiscard]] bool comparable(const RunView& a, const RunView& b);

// Where a run came from: machine and executor. Runs of the same place and the same work are
// repetitions.
[[nodiscard]] bool same_place(const RunView& a, const RunView& b);
// Measured by one call, turn by turn.
[[nodiscard]] bool in_one_call(const RunView& a, const RunView& b);

class Ratios {
 public:
  // `data` must outlive it.
  explicit Ratios(const Data& data) : data_(data) {}

  // Iterations are compared as `ridgeline compare` does it (docs/method-compare.md): those of one
  // call turn by turn, others with the noise floor of repeated runs in the store. Trainings without
  // stored iterations by their epochs: undecided where one of them has fewer than three. Nothing
  // where one of them has no times, or where the two are not comparable.
  [[nodiscard]] std::optional<Ratio> of(const RunView& run, const RunView& than);

 private:
  [[nodiscard]] const RunSeries& series(const RunView& run);
  [[nodiscard]] std::optional<LogMedian> median(const RunView& run);
  [[nodiscard]] std::vector<LogMedian> repetitions(const RunView& run, const RunView& other);
  [[nodiscard]] std::optional<NoiseFloor> floor_under(const RunView& a, const RunView& b);

  const Data& data_;
  std::map<RunId, RunSeries> series_;
  std::map<RunId, std::optional<LogMedian>> medians_;
  std::map<std::pair<RunId, RunId>, std::optional<Ratio>> known_;
};

// "2.31× [2.28–2.34]"
[[nodiscard]] std::string times_text(const Ratio& ratio);
[[nodiscard]] std::string times_text(const Estimate& ratio);  // without an interval: "2.31×"

// Of each place and work the newest run, in the order of the runs.
[[nodiscard]] std::vector<const RunView*> newest_of(const std::vector<const RunView*>& runs);

}  // namespace ridgeline::report
