#pragma once

// Two plans with measured steps, compared op by op: where B takes more or less time
// than A. Works across backends and devices, whatever each of them fuses.
//
// Steps are matched by the ops that they cover (phase, kind, layer). Where one side fuses what the
// other computes in several steps, the smallest group of steps that covers the same on both sides
// is one row: no step is split and none counts twice. What one side alone computes (a reorder, a
// cast) has a row of its own, and so has the time between the steps: an iteration less the sum of
// its steps. The rows add up to the difference of the iterations.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "measure/profile/profile.h"
#include "store/store.h"

namespace ridgeline {

// What is known of one side.
struct DifferenceSide {
  std::string name;  // "run 3: native on cpu, 4 threads"
  RunRecord run;     // work and executor, and more where the store knows it
  std::vector<StepTime> steps;
  std::optional<double> seconds;  // of an unprofiled iteration
};
[[nodiscard]] DifferenceSide difference_side(const Profile& profile);
[[nodiscard]] DifferenceSide difference_side(const Store& store, const RunRecord& run);

// Rows: each group of steps; or groups of the same kinds of ops, or of the same layers, as one.
enum class DifferenceBy { op, layer, step };

struct DifferenceOptions {
  DifferenceBy by = DifferenceBy::step;
  std::optional<std::int64_t> top = {};  // rows; the others become one
  bool force = false;                    // unlike work too
};

enum class RowKind { both, only_a, only_b, others, between_steps };
[[nodiscard]] std::string_view name_of(RowKind kind);  // "both", "only A", …

struct DifferenceRow {
  RowKind kind = RowKind::both;
  std::vector<std::string> layers, ops, phases;  // each once, in the order of the plan
  std::int64_t steps_a = 0, steps_b = 0;
  std::vector<std::string> kernels_a, kernels_b;  // each once
  double a = 0.0, b = 0.0;                        // seconds
  std::int64_t rows = 1;                          // that `others` stands for

  [[nodiscard]] double difference() const { return b - a; }
  // How many times as fast B is; nothing where one side does nothing of it.
  [[nodiscard]] std::optional<double> speedup() const;
};

struct StepDifference {
  std::string name_a, name_b;
  bool per_sample = false;  // other batches: times are of one sample, not of an iteration
  // Of the iterations; of the sums of the steps where an iteration was not timed.
  double total_a = 0.0, total_b = 0.0;
  std::vector<DifferenceRow> rows;  // largest difference first; at the end others, between steps
  std::vector<std::string> warnings;

  [[nodiscard]] double difference() const { return total_b - total_a; }
  [[nodiscard]] std::optional<double> speedup() const;
};

// Throws bad_input for a side without steps, and for unlike work unless forced.
[[nodiscard]] StepDifference step_difference(const DifferenceSide& a, const DifferenceSide& b,
                                             const DifferenceOptions& options);

}  // namespace ridgeline
