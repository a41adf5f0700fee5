#include "analysis/stats/summary.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace ridgeline {
namespace {

// The largest rank k such that the k-th smallest and k-th largest samples enclose the median with
// 95%: the chance that fewer than k of n samples lie below it is a binomial tail.
std::size_t enclosing_rank(std::size_t n) {
  const auto count = static_cast<double>(n);
  double term = -count * std::log(2.0);  // logarithm of P(0 below)
  double tail = 0.0;
  std::size_t rank = 0;
  for (std::size_t below = 0; below < n / 2; ++below) {
    tail += std::exp(term);
    if (tail > 0.025) break;
    rank = below + 1;
    const auto done = static_cast<double>(below);
    term += std::log((count - done) / (done + 1.0));
  }
  return std::max<std::size_t>(rank, 1);
}

// Reorders.
double median_in_place(std::vector<double>& values) {
  const std::size_t middle = values.size() / 2;
  const auto upper = values.begin() + static_cast<std::ptrdiff_t>(middle);
  std::nth_element(values.begin(), upper, values.end());
  if (values.size() % 2 == 1) return *upper;
  return (*std::max_element(values.begin(), upper) + *upper) / 2.0;
}

}  // namespace

double median_of(std::span<const double> samples) {
  ensure(!samples.empty(), "a median needs at least one sample");
  std::vector<double> values(samples.begin(), samples.end());
  return median_in_place(values);
}

double percentile(std::span<const double> samples, double percent) {
  ensure(!samples.empty(), "a percentile needs at least one sample");
  ensure(percent >= 0.0 && percent <= 100.0, "percentile {}: must be from 0 to 100", percent);
  std::vector<double> values(samples.begin(), samples.end());
  const double place = percent / 100.0 * static_cast<double>(values.size() - 1);
  const auto rank = static_cast<std::size_t>(place);
  const auto lower = values.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(values.begin(), lower, values.end());
  const double low = *lower;
  if (rank + 1 == values.size()) return low;
  const double high = *std::min_element(lower + 1, values.end());
  return low + (place - static_cast<double>(rank)) * (high - low);
}

Summary summarise(std::span<const double> samples) {
  Summary summary;
  summary.median = median_of(samples);  // checks that there are some
  summary.count = static_cast<std::int64_t>(samples.size());
  const auto [min, max] = std::minmax_element(samples.begin(), samples.end());
  summary.min = *min;
  summary.max = *max;
  const auto count = static_cast<double>(samples.size());
  summary.mean = std::accumulate(samples.begin(), samples.end(), 0.0) / count;
  double squares = 0.0;
  std::vector<double> distances;
  distances.reserve(samples.size());
  for (const double sample : samples) {
    squares += (sample - summary.mean) * (sample - summary.mean);
    distances.push_back(std::abs(sample - summary.median));
  }
  if (samples.size() > 1) summary.deviation = std::sqrt(squares / (count - 1.0));
  summary.mad = median_in_place(distances);
  return summary;
}

MedianInterval median_interval(std::span<const double> samples, double neighbours) {
  ensure(!samples.empty(), "a median needs at least one sample");
  ensure(neighbours >= 1.0, "{} samples that count as one", neighbours);
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t n = sorted.size();
  const double median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0;
  const auto counting = static_cast<std::size_t>(static_cast<double>(n) / neighbours);
  const auto before = static_cast<double>(enclosing_rank(counting) - 1);
  const auto left_out = static_cast<std::size_t>(before * neighbours);
  return {median, sorted[left_out], sorted[n - 1 - left_out]};
}

}  // namespace ridgeline
