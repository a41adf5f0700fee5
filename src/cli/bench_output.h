#pragma once

// What `bench` tells: a table with notes, a JSON document, one CSV row for each sample.

#include <optional>
#include <string>
#include <vector>

#include "cli/bench_matrix.h"
#include "lab/measure/result.h"

namespace ridgeline::cli {

struct BenchReport {
  std::vector<Measured> results;  // one for each candidate
  std::vector<LeftOut> left_out;
  std::string grouping;                   // why not all were side by side; empty: they were
  std::string order;                      // how turns were taken, in words
  std::vector<std::string> runs;          // uuid of each in the store; empty: not stored
  std::string store;                      // the file; empty: none
  std::optional<double> telemetry_share;  // of one core; nothing: no telemetry
  std::optional<double> recording_share;  // of the time of the whole measuring; nothing: no store
  std::int64_t processes = 1;
  bool per_step = false;
};

[[nodiscard]] std::string bench_text(const BenchReport& report);
[[nodiscard]] std::string bench_json(const BenchReport& report);
[[nodiscard]] std::string bench_csv(const BenchReport& report);

// "torch-cpu (channels_last)"
[[nodiscard]] std::string executor_text(const Executor& executor);
// What the device must hold for it: planned where we plan, measured of peers; nothing: unknown.
[[nodiscard]] std::optional<double> memory_of(const Measured& measured);
// All of a run: of its samples, its sensors, its plan.
[[nodiscard]] std::vector<Finding> findings_of(const Measured& measured,
                                               const MeasuredSummary& summary);

}  // namespace ridgeline::cli
