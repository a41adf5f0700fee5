#pragma once

// Runs that took turns with each other, turn by turn: how long B's turn took beside A's. What slows
// both down for a while cancels out, where the medians of whole runs hold all of it.

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/compare/run_series.h"

namespace ridgeline {

// The logarithm of B's median over A's within each of the shared turns, in their order.
[[nodiscard]] std::vector<double> turn_log_ratios(const RunSeries& a, const RunSeries& b,
                                                  std::span<const std::int64_t> turns);

// The mean of the middle half: a turn that was disturbed does not count, however long it took, and
// the rest counts for more than a median would let it. Values at the edges count in part.
// REQUIRES: values.
[[nodiscard]] double midmean(std::span<const double> values);

// The midmean and what it might have been had other turns been measured.
struct PairedRatio {
  double log_ratio = 0.0;
  std::vector<double> replicates;  // drawn logarithmic ratios
  std::int32_t units = 0;          // that were drawn: neighbouring turns as far as they correlate
};
// REQUIRES: log_ratios of at least kFewestShared turns.
inline constexpr std::size_t kFewestShared = 6;
[[nodiscard]] PairedRatio paired_ratio(std::span<const double> log_ratios);

}  // namespace ridgeline
