#include "analysis/compare/noise.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/stats/bootstrap.h"
#include "analysis/stats/summary.h"

namespace ridgeline {

VarianceComponent sum_of(std::span<const VarianceComponent> components) {
  VarianceComponent sum;
  double doubt = 0.0;
  for (const VarianceComponent& component : components) {
    sum.variance += component.variance;
    if (component.variance > 0.0) {
      doubt += component.variance * component.variance / component.degrees;
    }
  }
  sum.degrees =
      doubt > 0.0 ? sum.variance * sum.variance / doubt : std::numeric_limits<double>::infinity();
  return sum;
}

std::optional<LogMedian> log_median(const RunSeries& series) {
  const UnitLabels labels = unit_labels(series.seconds, series.turn);
  if (labels.count < 2) return std::nullopt;
  const MedianResampler resampler(series.seconds, labels);
  std::vector<std::int32_t> times(static_cast<std::size_t>(labels.count));
  std::vector<double> values;
  for (std::uint64_t replicate = 0; replicate < 1000; ++replicate) {
    UnitDraw(replicate).draw(times);
    values.push_back(std::log(resampler.median(times)));
  }
  const double deviation = summarise(values).deviation, units = labels.count;
  return LogMedian{std::log(median_of(series.seconds)),
                   deviation * deviation * units / (units - 1.0)};
}

std::optional<VarianceComponent> between(std::span<const std::vector<LogMedian>> groups) {
  double squares = 0.0, degrees = 0.0, own = 0.0, count = 0.0;
  for (const std::vector<LogMedian>& group : groups) {
    if (group.size() < 2) continue;
    const auto size = static_cast<double>(group.size());
    double mean = 0.0;
    for (const LogMedian& median : group) mean += median.value / size;
    for (const LogMedian& median : group) {
      squares += (median.value - mean) * (median.value - mean);
      own += median.variance;
    }
    degrees += size - 1.0;
    count += size;
  }
  if (degrees == 0.0) return std::nullopt;
  return VarianceComponent{std::max(squares / degrees - own / count, 0.0), degrees};
}

double NoiseFloor::deviation() const { return std::sqrt(run.variance); }

std::optional<NoiseFloor> noise_floor(std::span<const std::vector<LogMedian>> alike_runs) {
  const auto component = between(alike_runs);
  if (!component) return std::nullopt;
  NoiseFloor floor{*component, 0};
  for (const auto& group : alike_runs) {
    if (group.size() > 1) floor.runs += static_cast<std::int64_t>(group.size());
  }
  return floor;
}

}  // namespace ridgeline
