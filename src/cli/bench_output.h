#pragma once

// What `bench` tells: a table with notes, one CSV row for each sample.

#include <optional>
#include <string>
#include <vector>

#include "documents/bench.h"

namespace ridgeline::cli {

[[nodiscard]] std::string bench_text(const BenchReport& report, bool per_step);
[[nodiscard]] std::string bench_csv(const BenchReport& report);

// "torch-cpu (channels_last)"
[[nodiscard]] std::string executor_text(const Executor& executor);
// The titles that the table of results may have.
[[nodiscard]] std::vector<std::string> bench_columns();
}  // namespace ridgeline::cli
