#pragma once

// Summaries of repeated measurements. Nothing is dropped: outliers stay in the samples.

#include <span>
#include <vector>

namespace ridgeline {

// The median and an interval that covers the true median with at least 95% confidence, from the
// ranks of the samples (no distribution is assumed). With fewer than six samples no ranks reach
// that, and the interval is the range of the samples.
struct MedianInterval {
  double median = 0.0, low = 0.0, high = 0.0;
};

// REQUIRES: at least one sample.
[[nodiscard]] MedianInterval median_interval(std::span<const double> samples);

}  // namespace ridgeline
