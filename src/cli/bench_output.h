#pragma once

// What `bench` tells: a table with notes, a JSON document, one CSV row for each sample.

#include <optional>
#include <string>
#include <vector>

#include "lab/bench.h"

namespace ridgeline::cli {

[[nodiscard]] std::string bench_text(const BenchReport& report, bool per_step);
[[nodiscard]] std::string bench_json(const BenchReport& report, bool per_step);
[[nodiscard]] std::string bench_csv(const BenchReport& report);

// "torch-cpu (channels_last)"
[[nodiscard]] std::string executor_text(const Executor& executor);
// The titles that the table of results may have.
[[nodiscard]] std::vector<std::string> bench_columns();
// Of the run's numbers; nothing: it has none of that name.
[[nodiscard]] std::optional<double> number_of(const Measured& measured, const char* name);
// What the device must hold for it: planned where we plan, measured of peers; nothing: unknown.
[[nodiscard]] std::optional<double> memory_of(const Measured& measured);
// All of a run: of its samples, its sensors, its plan.
[[nodiscard]] std::vector<Finding> findings_of(const Measured& measured,
                                               const MeasuredSummary& summary);

}  // namespace ridgeline::cli
