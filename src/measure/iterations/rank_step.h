#pragma once

// A training step of several ranks, measured beside others: mpirun starts them once, rank 0 is told
// by lines when all of them shall run, and they sleep while others have their turns.

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/iterations/measured_step.h"
#include "ranks/ranks.h"

namespace ridgeline {

struct RankStepConfig {
  Work work;
  Executor executor;                 // nodes and transport are filled in: the ranks know them
  std::vector<std::string> command;  // starts the ranks, each of which serves its step
  double reply_seconds = 600.0;      // how long an answer may take
};

// Starts the ranks, which plan and allocate nothing yet. Throws what hinders them.
[[nodiscard]] std::unique_ptr<MeasuredStep> make_rank_step(RankStepConfig config);

// One rank's side of it: makes its step and does what it is told until there are no more lines.
// Rank 0 alone reads and writes. `connected`: the step has exchanges; without them ranks only begin
// together.
void serve_rank_step(const std::function<std::unique_ptr<MeasuredStep>()>& make, bool connected,
                     Ranks& ranks, const std::function<std::optional<std::string>()>& read,
                     const std::function<void(const std::string& line)>& write);

// A rank that computes longer than the ranks do in the median, by a tenth or more and in three of
// four iterations: the others wait for it. `busy`: seconds of each iteration, of each rank.
struct SlowRank {
  int rank = 0;
  double share = 0.0;  // by how much
  std::optional<Finding> finding;
};
[[nodiscard]] SlowRank slow_rank(std::span<const std::vector<double>> busy,
                                 std::span<const std::string> machines);

}  // namespace ridgeline
