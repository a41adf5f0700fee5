#include "analysis/stats/steadiness.h"

#include <algorithm>
#include <cmath>

#include "analysis/stats/summary.h"
#include "analysis/stats/trend.h"

namespace ridgeline {

bool steady_end(std::span<const double> seconds) {
  constexpr std::size_t kShortest = 3, kLongest = 20;
  constexpr double kTolerance = 0.02, kTrendTolerance = 0.005, kChance = 0.05;
  const std::size_t window = std::clamp(seconds.size() / 3, kShortest, kLongest);
  if (seconds.size() < 2 * window + 1) return false;
  const Summary last = summarise(seconds.last(window));
  const Summary before = summarise(seconds.subspan(seconds.size() - 2 * window, window));
  // Two standard errors of the difference of two medians. Of the two scatters the smaller: a slope
  // inside one window must not excuse itself.
  const double scatter = 1.4826 * std::min(last.mad, before.mad);
  const double error = 1.2533 * scatter * std::sqrt(2.0 / static_cast<double>(window));
  if (std::abs(last.median - before.median) > std::max(kTolerance * before.median, 2.0 * error)) {
    return false;
  }
  const Trend trend = trend_of(seconds.last(2 * window));
  const double change = std::abs(trend.slope) * static_cast<double>(2 * window);
  return trend.chance > kChance || change < kTrendTolerance * last.median;
}

}  // namespace ridgeline
