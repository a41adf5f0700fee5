#pragma once

// What a series of step times shows beside its median: labels for the reader, with evidence.
// Samples are labelled, never dropped.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "store/records.h"

namespace ridgeline {

// How far from the median, in robust standard deviations (1.4826 MAD): beyond 5 far, beyond 15 very
// far. A sample within 2% of the median is never far, whatever the deviation.
enum class Outlier : std::uint8_t { none, far, very_far };
[[nodiscard]] std::vector<Outlier> label_outliers(std::span<const double> samples);

// Every period-th sample differs from the others.
struct PeriodicPattern {
  std::int64_t period = 0, phase = 0;  // samples phase, phase + period, …
  double ratio = 1.0;                  // of the median of those to the median of the others
  std::int64_t members = 0;            // how many they are
  std::int64_t extreme = 0;            // how many of the `members` most extreme samples are theirs
  double chance = 1.0;                 // of that in a series without a pattern, all periods tried
};
// Looks for periods of 2 to 64 samples with at least 5 members that differ by at least 5%. The
// test counts where the most extreme samples fall, so that a single outlier proves nothing and no
// distribution is assumed.
[[nodiscard]] std::optional<PeriodicPattern> find_period(std::span<const double> samples);

// The series goes one way: a machine that throttles, a leak, a warm-up that was too short.
struct Drift {
  double change = 0.0;  // relative, from the first quarter's median to the last one's
  double first = 0.0, last = 0.0;
  double chance = 1.0;  // of such a trend without a drift (Mann-Kendall)
};
// From 16 samples on, for changes of at least 3%.
[[nodiscard]] std::optional<Drift> find_drift(std::span<const double> samples);

// Iterations that wait for data.
struct DataWait {
  double share = 0.0;        // of the time of all iterations
  std::int64_t stalled = 0;  // iterations that waited longer than half a median iteration
  double longest = 0.0;      // seconds
  std::int64_t iterations = 0;
};
[[nodiscard]] std::optional<DataWait> data_wait_of(std::span<const Sample> samples);

// Findings of the measured samples, process by process: "periodic samples", "drift", "outliers",
// "loader-bound", "loader stalls".
[[nodiscard]] std::vector<Finding> series_findings(std::span<const Sample> samples);

}  // namespace ridgeline
