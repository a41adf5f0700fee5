#include "analysis/stats/trend.h"

#include <cmath>
#include <numbers>
#include <vector>

#include "analysis/stats/summary.h"

namespace ridgeline {

Trend trend_of(std::span<const double> samples) {
  const std::size_t n = samples.size();
  Trend trend;
  std::vector<double> slopes;
  slopes.reserve(n * (n - 1) / 2);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = i + 1; j < n; ++j) {
      const double rise = samples[j] - samples[i];
      slopes.push_back(rise / static_cast<double>(j - i));
      trend.rises += rise > 0.0 ? 1.0 : rise < 0.0 ? -1.0 : 0.0;
    }
  }
  trend.slope = median_of(slopes);
  const auto count = static_cast<double>(n);
  const double deviation = std::sqrt(count * (count - 1.0) * (2.0 * count + 5.0) / 18.0);
  // One less: the sum moves in steps of two (continuity).
  const double z = std::fmax(std::abs(trend.rises) - 1.0, 0.0) / deviation;
  trend.chance = std::erfc(z / std::numbers::sqrt2);
  return trend;
}

}  // namespace ridgeline
