#pragma once

// Comparisons that a NaN cannot pass: std::max() forgets one, and so does `!(a <= b)` at the next
// element.

#include <cmath>
#include <limits>
#include <ranges>

namespace ridgeline::testing {

// The larger one; NaN where either is. No comparison "below a limit" holds for it.
[[nodiscard]] inline double larger_or_nan(double worst, double next) {
  return std::isnan(worst) || next <= worst ? worst : next;
}

// The largest |values[i] - expected[i]|. NaN where either side has one, infinite where the sizes
// differ.
template <typename Values, typename Expected>
[[nodiscard]] double worst_difference(const Values& values, const Expected& expected) {
  if (std::size(values) != std::size(expected)) return std::numeric_limits<double>::infinity();
  double worst = 0.0;
  for (std::size_t i = 0; i < std::size(values); ++i) {
    worst = larger_or_nan(
        worst, std::abs(static_cast<double>(values[i]) - static_cast<double>(expected[i])));
  }
  return worst;
}

}  // namespace ridgeline::testing
