#pragma once

// Summaries of repeated measurements. Nothing is dropped: outliers stay in the samples.

#include <cstdint>
#include <span>
#include <vector>

namespace ridgeline {

struct Summary {
  std::int64_t count = 0;
  double median = 0.0, mean = 0.0, min = 0.0, max = 0.0;
  double deviation = 0.0;  // standard, over n - 1; 0 for one sample
  double mad = 0.0;        // median of the distances from the median
};

// REQUIRES (all functions): at least one sample.
[[nodiscard]] Summary summarise(std::span<const double> samples);
[[nodiscard]] double median_of(std::span<const double> samples);
// The smallest value that at least `percent` of the samples do not exceed, interpolated as NumPy
// does by default.
[[nodiscard]] double percentile(std::span<const double> samples, double percent);

struct Interval {
  double low = 0.0, high = 0.0;
};

// The median and an interval that covers the true median with at least 95% confidence, from the
// ranks of the samples (no distribution is assumed). With fewer than six samples no ranks reach
// that, and the interval is the range of the samples. Of samples that depend on their neighbours so
// many count as one.
struct MedianInterval {
  double median = 0.0, low = 0.0, high = 0.0;
};
[[nodiscard]] MedianInterval median_interval(std::span<const double> samples,
                                             double neighbours = 1.0);

// The median of all samples with a bootstrap interval that draws whole blocks: iterations of one
// block share the machine's mood and are not independent. `block` gives each sample's block. With
// fewer than six blocks, runs of neighbours longer than they are correlated take their place; where
// even those are fewer than six, the ranks of the samples do. Covers the true median with 95%
// confidence; the same samples always give the same interval. How it is made: bootstrap.h,
// docs/method-compare.md.
[[nodiscard]] MedianInterval block_bootstrap(std::span<const double> samples,
                                             std::span<const std::int64_t> block);

}  // namespace ridgeline
