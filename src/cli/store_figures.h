#pragma once

// Figures of a stored run that several outputs show.

#include <optional>
#include <string>
#include <vector>

#include "analysis/stats/summary.h"
#include "store/store.h"

namespace ridgeline::cli {

// Of the samples of one kind; nothing when there are none.
struct SampleSummary {
  Summary summary;
  MedianInterval interval;
  double p5 = 0.0, p95 = 0.0, p99 = 0.0;
};
[[nodiscard]] std::optional<SampleSummary> summary_of(const std::vector<Sample>& samples,
                                                      SampleKind kind);

// The number that the run carries, or, for one that was killed, from its samples.
struct RunFigures {
  std::optional<double> median_seconds, samples_per_second;
  std::int64_t measured = 0;
};
[[nodiscard]] RunFigures figures_of(const Store& store, const RunRecord& run);

// One sensor over a run.
struct SensorSummary {
  std::string device, sensor, unit;
  std::int64_t count = 0;
  double mean = 0.0, min = 0.0, max = 0.0;
  double change = 0.0;  // from the first to the last: what a counter means
};
[[nodiscard]] std::vector<SensorSummary> sensors_of(const std::vector<Reading>& readings);

// "3.21 ms", "12.3 MiB", "4.2 GFLOP", "0.031"
// Steps of a plan with their rates, each with its share of `total` seconds.
[[nodiscard]] std::string steps_table(std::span<const StepTime> steps, double total);

[[nodiscard]] std::string with_unit(double value, std::string_view unit);

}  // namespace ridgeline::cli
