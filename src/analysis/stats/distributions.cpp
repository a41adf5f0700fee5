#include "analysis/stats/distributions.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace ridgeline {
namespace {

double normal_below(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

// Lentz's continued fraction of the regularised incomplete beta function; converges fast for
// x < (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300, kEnough = 1e-15;
  const auto away_from_zero = [](double v) { return std::abs(v) < kTiny ? kTiny : v; };
  double c = 1.0, d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
  double value = d;
  for (int m = 1; m <= 500; ++m) {
    const double n = m;
    const double even = n * (b - n) * x / ((a + 2.0 * n - 1.0) * (a + 2.0 * n));
    d = 1.0 / away_from_zero(1.0 + even * d);
    c = away_from_zero(1.0 + even / c);
    value *= d * c;
    const double odd = -(a + n) * (a + b + n) * x / ((a + 2.0 * n) * (a + 2.0 * n + 1.0));
    d = 1.0 / away_from_zero(1.0 + odd * d);
    c = away_from_zero(1.0 + odd / c);
    const double change = d * c;
    value *= change;
    if (std::abs(change - 1.0) < kEnough) break;
  }
  return value;
}

double incomplete_beta(double a, double b, double x) {
  if (x <= 0.0) return 0.0;
  if (x >= 1.0) return 1.0;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1.0) / (a + b + 2.0)) return front * beta_fraction(a, b, x) / a;
  return 1.0 - front * beta_fraction(b, a, 1.0 - x) / b;
}

// For t <= 0, where the tail is small and must be exact.
double student_below(double t, double degrees) {
  return 0.5 * incomplete_beta(degrees / 2.0, 0.5, degrees / (degrees + t * t));
}

// The x < 0 at which `below` reaches p < 1/2.
template <typename Below>
double lower_quantile(double p, Below below) {
  double low = -1.0;
  while (below(low) > p) low *= 2.0;
  double high = 0.0;
  for (int i = 0; i < 200 && low < high; ++i) {
    const double middle = (low + high) / 2.0;
    if (middle <= low || middle >= high) break;
    (below(middle) < p ? low : high) = middle;
  }
  return (low + high) / 2.0;
}

}  // namespace

double normal_quantile(double p) {
  ensure(p > 0.0 && p < 1.0, "quantile at {}: must be between 0 and 1", p);
  if (p == 0.5) return 0.0;
  if (p > 0.5) return -normal_quantile(1.0 - p);
  return lower_quantile(p, normal_below);
}

double student_quantile(double p, double degrees) {
  ensure(p > 0.0 && p < 1.0, "quantile at {}: must be between 0 and 1", p);
  ensure(degrees > 0.0, "degrees of freedom {}: must be positive", degrees);
  if (degrees > 1e6) return normal_quantile(p);
  if (p == 0.5) return 0.0;
  if (p > 0.5) return -student_quantile(1.0 - p, degrees);
  return lower_quantile(p, [degrees](double t) { return student_below(t, degrees); });
}

double hypergeometric_tail(std::int64_t total, std::int64_t marked, std::int64_t drawn,
                           std::int64_t hits) {
  const auto log_choose = [](std::int64_t n, std::int64_t k) {
    return std::lgamma(static_cast<double>(n + 1)) - std::lgamma(static_cast<double>(k + 1)) -
           std::lgamma(static_cast<double>(n - k + 1));
  };
  const double all = log_choose(total, drawn);
  const std::int64_t first = std::max({hits, drawn + marked - total, std::int64_t{0}});
  double tail = 0.0;
  for (std::int64_t k = first; k <= std::min(marked, drawn); ++k) {
    const double term =
        std::exp(log_choose(marked, k) + log_choose(total - marked, drawn - k) - all);
    tail += term;
    // Past the middle the terms only fall.
    const bool past = static_cast<double>(k) * static_cast<double>(total) >
                      static_cast<double>(marked) * static_cast<double>(drawn);
    if (past && term < 1e-17 * tail) break;
  }
  return std::min(tail, 1.0);
}

}  // namespace ridgeline
