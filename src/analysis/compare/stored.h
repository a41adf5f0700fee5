#pragma once

// Two runs of a store compared: all that the store knows goes into one answer.

#include <optional>
#include <string>
#include <vector>

#include "analysis/compare/gap.h"
#include "analysis/compare/pair_judge.h"

namespace ridgeline {

struct RunComparison {
  RunRecord a, b;
  std::vector<Difference> work;      // not empty: unlike work, compared all the same
  std::vector<Difference> executor;  // what is compared
  PairVerdict pair;
  GapLedger gap;
  std::vector<std::string> warnings;
  std::vector<Finding> findings_a, findings_b;
};

// Throws bad_input for a margin or a significance level that is none.
void check_verdict_options(const VerdictOptions& options);

// Throws bad_input for runs without times, and unless `force` for unlike work and for times that
// were measured in different ways.
[[nodiscard]] RunComparison compare_runs(const Store& store, const RunRecord& a, const RunRecord& b,
                                         const VerdictOptions& options, bool force);

// One run by its name as Store::run takes it, or the newest that fits conditions (run_filter.h):
// "backend=native", "model=mlp,backend=auto,label=before".
[[nodiscard]] RunRecord find_run(const Store& store, const std::string& name);

// The runs of one call, oldest first, by the first letters of its uuid; "last": of the newest.
[[nodiscard]] std::vector<RunRecord> runs_of_call(const Store& store, const std::string& name);

}  // namespace ridgeline
