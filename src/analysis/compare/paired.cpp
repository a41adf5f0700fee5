#include "analysis/compare/paired.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "analysis/stats/bootstrap.h"
#include "analysis/stats/summary.h"
#include "base/error.h"

namespace ridgeline {
namespace {

constexpr std::size_t kMostUnits = 200, kFewUnits = 6;

std::map<std::int64_t, double> turn_medians(const RunSeries& series) {
  std::map<std::int64_t, std::vector<double>> turns;
  for (std::size_t i = 0; i < series.seconds.size(); ++i) {
    turns[series.turn[i]].push_back(series.seconds[i]);
  }
  std::map<std::int64_t, double> medians;
  for (const auto& [turn, seconds] : turns) medians[turn] = median_of(seconds);
  return medians;
}

// The mean of the middle half of sorted values, each of which counts `times[i]` times.
template <typename Times>
double middle_of(std::span<const double> sorted, double total, Times times) {
  const double from = 0.25 * total, to = 0.75 * total;
  double passed = 0.0, sum = 0.0;
  for (std::size_t i = 0; i < sorted.size() && passed < to; ++i) {
    const double next = passed + static_cast<double>(times(i));
    const double inside = std::min(next, to) - std::max(passed, from);
    if (inside > 0.0) sum += inside * sorted[i];
    passed = next;
  }
  return sum / (to - from);
}

// Neighbouring turns are drawn together as far as their ratios correlate, and at least two of them:
// in those each run had the first place once.
std::size_t unit_count(std::span<const double> log_ratios) {
  const std::size_t turns = log_ratios.size();
  std::size_t units = std::min(std::max(turns / 2, kFewUnits), kMostUnits);
  const double correlated = correlation_length(log_ratios);
  if (correlated > 1.0) {
    const double fitting = static_cast<double>(turns) / (2.0 * correlated);
    units = std::min(units, std::max(static_cast<std::size_t>(fitting), kFewUnits));
  }
  return units;
}

}  // namespace

std::vector<double> turn_log_ratios(const RunSeries& a, const RunSeries& b,
                                    std::span<const std::int64_t> turns) {
  const auto medians_a = turn_medians(a), medians_b = turn_medians(b);
  std::vector<double> ratios;
  ratios.reserve(turns.size());
  for (const std::int64_t turn : turns) {
    ratios.push_back(std::log(medians_b.at(turn) / medians_a.at(turn)));
  }
  return ratios;
}

double midmean(std::span<const double> values) {
  ensure(!values.empty(), "a mean of no values");
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return middle_of(sorted, static_cast<double>(sorted.size()), [](std::size_t) { return 1; });
}

PairedRatio paired_ratio(std::span<const double> log_ratios) {
  const std::size_t turns = log_ratios.size(), units = unit_count(log_ratios);
  ensure(turns >= kFewestShared, "{} turns: too few for an interval", turns);
  std::vector<std::uint32_t> order(turns);
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::uint32_t x, std::uint32_t y) {
    return log_ratios[x] < log_ratios[y] || (log_ratios[x] == log_ratios[y] && x < y);
  });
  std::vector<double> sorted;
  std::vector<std::size_t> unit_of;  // of the sorted ratios
  std::vector<std::int64_t> size(units);
  for (const std::uint32_t turn : order) {
    sorted.push_back(log_ratios[turn]);
    unit_of.push_back(turn * units / turns);
    ++size[unit_of.back()];
  }
  PairedRatio result{midmean(log_ratios), {}, static_cast<std::int32_t>(units)};
  result.replicates.reserve(kReplicates);
  std::vector<std::int32_t> times(units);
  for (std::uint64_t replicate = 0; replicate < kReplicates; ++replicate) {
    UnitDraw(replicate).draw(times);
    double total = 0.0;
    for (std::size_t u = 0; u < units; ++u) {
      total += static_cast<double>(times[u]) * static_cast<double>(size[u]);
    }
    result.replicates.push_back(
        middle_of(sorted, total, [&](std::size_t i) { return times[unit_of[i]]; }));
  }
  return result;
}

}  // namespace ridgeline
