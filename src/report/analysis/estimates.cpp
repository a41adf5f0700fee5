#include "report/analysis/estimates.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "analysis/stats/bootstrap.h"
#include "analysis/stats/summary.h"
#include "base/error.h"
#include "report/analysis/ratios.h"
#include "report/run_fields.h"

namespace ridgeline::report {
namespace {

// Ranks from 1; equal values share the mean of theirs.
std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<double> ranks;
  for (const double value : values) {
    double below = 0.0, equal = 0.0;
    for (const double other : values) {
      below += other < value ? 1.0 : 0.0;
      equal += other == value ? 1.0 : 0.0;
    }
    ranks.push_back(below + (equal + 1.0) / 2.0);
  }
  return ranks;
}

double rank_correlation(std::span<const TrendPoint> points) {
  std::vector<double> at, values;
  for (const TrendPoint& point : points) {
    at.push_back(point.at);
    values.push_back(point.value.value);
  }
  const std::vector<double> a = ranks_of(at), b = ranks_of(values);
  const double mean = (static_cast<double>(points.size()) + 1.0) / 2.0;
  double both = 0.0, of_a = 0.0, of_b = 0.0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    both += (a[i] - mean) * (b[i] - mean);
    of_a += (a[i] - mean) * (a[i] - mean);
    of_b += (b[i] - mean) * (b[i] - mean);
  }
  return of_a > 0.0 && of_b > 0.0 ? both / std::sqrt(of_a * of_b) : 0.0;
}

}  // namespace

Estimate geometric_mean(std::span<const double> values) {
  ensure(!values.empty(), "a mean needs values");
  double sum = 0.0;
  for (const double value : values) sum += std::log(value);
  const auto count = static_cast<double>(values.size());
  Estimate mean;
  mean.value = std::exp(sum / count);
  mean.samples = static_cast<std::int64_t>(values.size());
  if (!mean.sound()) {
    const auto [least, most] = std::ranges::minmax_element(values);
    mean.low = *least;
    mean.high = *most;
    return mean;
  }
  std::vector<std::int32_t> times(values.size());
  std::vector<double> drawn;
  for (std::uint64_t replicate = 0; replicate < kReplicates; ++replicate) {
    UnitDraw(replicate).draw(times);
    double total = 0.0;
    for (std::size_t i = 0; i < values.size(); ++i) total += times[i] * std::log(values[i]);
    drawn.push_back(total / count);
  }
  const double stretch = small_sample_stretch(count, count - 1.0, 0.95), center = sum / count;
  mean.low = std::exp(center + stretch * (percentile(drawn, 2.5) - center));
  mean.high = std::exp(center + stretch * (percentile(drawn, 97.5) - center));
  return mean;
}

Outcome combined(std::span<const Outcome> outcomes) {
  const auto any = [&](Outcome wanted) { return has(outcomes, wanted); };
  if (any(Outcome::not_confirmed)) return Outcome::not_confirmed;
  if (outcomes.empty() || any(Outcome::undecided)) return Outcome::undecided;
  return Outcome::confirmed;
}

Trend trend_of(std::span<const TrendPoint> points, std::size_t fewest, const std::string& doubts) {
  ensure(points.size() >= 2, "a trend needs two points");
  Trend trend;
  trend.growth = ratio_of(points.back().value, points.front().value);
  trend.rank_correlation = rank_correlation(points);
  // A range of few values is no evidence, however far apart they are.
  if (!std::ranges::all_of(points, [](const TrendPoint& point) { return point.value.sound(); })) {
    return trend;
  }
  const double above = 1.0 + kTrendMargin, below = 1.0 / above;
  for (std::size_t i = 0; i + 1 < points.size() && trend.falls_at < 0; ++i) {
    if (points[i + 1].at <= points[i].at) continue;
    const Estimate step = ratio_of(points[i + 1].value, points[i].value);
    if (step.value < below && is_below_one(step, doubts)) trend.falls_at = static_cast<int>(i);
  }
  std::set<double> places;
  for (const TrendPoint& point : points) places.insert(point.at);
  if (trend.falls_at >= 0 || (doubts.empty() && trend.growth.high <= above)) {
    trend.outcome = Outcome::not_confirmed;
  } else if (places.size() >= fewest && is_above_one(trend.growth, doubts) &&
             trend.growth.value > above) {
    trend.outcome = Outcome::confirmed;
  }
  return trend;
}

}  // namespace ridgeline::report
