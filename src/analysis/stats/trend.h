#pragma once

#include <span>

namespace ridgeline {

// Whether a series rises or falls, by ranks: no distribution is assumed and an outlier is one vote.
struct Trend {
  double slope = 0.0;   // for each sample: the median of the slopes of all pairs (Theil and Sen)
  double rises = 0.0;   // pairs that rise less pairs that fall
  double chance = 1.0;  // of so many in a series without a trend (Mann and Kendall, both ways)
};
// For series of some dozens: all pairs are looked at. REQUIRES: at least two samples.
[[nodiscard]] Trend trend_of(std::span<const double> samples);

}  // namespace ridgeline
