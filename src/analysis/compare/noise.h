#pragma once

// Variation beyond that of the samples inside one run: from process to process, and from run to run
// of the same thing. All in logarithms, so that a deviation of 0.01 is 1% of the time.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/compare/run_series.h"

namespace ridgeline {

// A part of the variance of an estimate, and how well it is known.
struct VarianceComponent {
  double variance = 0.0;
  double degrees = 0.0;  // of freedom
};

// The sum, and its degrees of freedom after Welch and Satterthwaite.
[[nodiscard]] VarianceComponent sum_of(std::span<const VarianceComponent> components);

// A median with the variance that its own samples explain.
struct LogMedian {
  double value = 0.0, variance = 0.0;
};
// By the bootstrap over blocks. Nothing where there is one unit only. REQUIRES: samples.
[[nodiscard]] std::optional<LogMedian> log_median(const RunSeries& series);

// What the values of a group scatter beyond their own variances; groups are pooled. Nothing where
// no group has two.
[[nodiscard]] std::optional<VarianceComponent> between(
    std::span<const std::vector<LogMedian>> groups);

// The floor under every comparison of runs that were not measured side by side: how much a run of
// the same work by the same executor in the same environment differs from the next (A/A).
struct NoiseFloor {
  VarianceComponent run;  // of one run's logarithmic median
  std::int64_t runs = 0;  // that it was taken from
  [[nodiscard]] double deviation() const;
};
[[nodiscard]] std::optional<NoiseFloor> noise_floor(
    std::span<const std::vector<LogMedian>> alike_runs);

}  // namespace ridgeline
