#include "lab/stats/summary.h"

#include <algorithm>
#include <cmath>

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

}  // namespace

MedianInterval median_interval(std::span<const double> samples) {
  ensure(!samples.empty(), "a median needs at least one sample");
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t n = sorted.size();
  const double median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0;
  const std::size_t rank = enclosing_rank(n);
  return {median, sorted[rank - 1], sorted[n - rank]};
}

}  // namespace ridgeline
