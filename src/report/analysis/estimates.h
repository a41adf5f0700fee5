#pragma once

// Arithmetic with numbers that have intervals.

#include <span>
#include <vector>

#include "report/data.h"

namespace ridgeline::report {

// The geometric mean with an interval of 95% by a bootstrap over the values; of fewer than six the
// range. REQUIRES: positive values, at least one.
[[nodiscard]] Estimate geometric_mean(std::span<const double> values);

// Whether something grows along an axis.
struct TrendPoint {
  double at = 0.0;  // on the axis
  Estimate value;
  std::vector<RunId> runs;
  std::string name;  // "batch 64"
};
enum class Outcome { confirmed, not_confirmed, undecided };
// Of several answers to one question: confirmed when all are, not confirmed when one is not.
[[nodiscard]] Outcome combined(std::span<const Outcome> outcomes);

// Changes up to this share are neither growth nor fall: runs differ by as much by themselves.
inline constexpr double kTrendMargin = 0.05;

struct Trend {
  Outcome outcome = Outcome::undecided;
  Estimate growth;  // the last value over the first
  // Where it falls although it should grow: from this point to the next; -1: nowhere.
  int falls_at = -1;
  double rank_correlation = 0.0;  // Spearman's, of the axis and the value
};
// Confirmed: the last value exceeds the first, by more than the margin and beyond doubt of the
// intervals, and no step to the next larger value of the axis falls in the same sense. Not
// confirmed: the growth from end to end is at most the margin, or a step falls. Undecided: neither,
// or fewer than `fewest` values of the axis, or a point without an interval (Estimate::sound), or
// `doubts` and less growth or fall than a machine's own changes reach. REQUIRES: two points, in the
// order of the axis.
[[nodiscard]] Trend trend_of(std::span<const TrendPoint> points, std::size_t fewest,
                             const std::string& doubts = {});

}  // namespace ridgeline::report
