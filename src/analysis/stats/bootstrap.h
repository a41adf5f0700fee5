#pragma once

// Bootstrap of medians over units: whole blocks of neighbouring samples that are drawn together,
// because samples inside a block are not independent.
//
// Two things make it sound where a plain percentile bootstrap is not. Units are longer than the
// correlation of the samples reaches (unit_labels). And with few units the distances of the drawn
// medians from the median are stretched by Student's t over the normal quantile and by
// sqrt(units / (units - 1)): drawing units instead of measuring new ones makes the spread that much
// too small. tests/analysis/stats_test.cpp holds the coverage against simulated correlated series.
//
// Pieces of few blocks that are fewer than six are too few for that: two medians may be near each
// other by chance, and Student's t of two stretches them to times that no machine has. The ranks of
// the samples take their place, where twice as many neighbours as they are correlated count as one.

#include <cstdint>
#include <span>
#include <vector>

#include "base/philox.h"

namespace ridgeline {

// How many neighbours count as one: 1 + 2 times the sum of the autocorrelations of "is it above the
// median", which is what the spread of a median depends on. At least 1.
[[nodiscard]] double correlation_length(std::span<const double> samples);

// Samples by units.
struct UnitLabels {
  std::vector<std::int32_t> unit;  // of each sample, from 0
  std::int32_t count = 0;
  bool pieces = false;  // of blocks, not blocks
};
// Blocks are units. More than 200 blocks, or blocks shorter than twice the correlation, are joined
// with their neighbours. Fewer than 6 are cut into pieces four times as long as the correlation, if
// they have that many samples, unless the pieces show that the blocks differ: then only blocks
// count. REQUIRES: samples in order of measuring.
[[nodiscard]] UnitLabels unit_labels(std::span<const double> samples,
                                     std::span<const std::int64_t> block);

// Medians of samples whose units are drawn several times or not at all. The cost of one median does
// not grow with the samples but with the units: the samples are sorted once and counted in cells.
class MedianResampler {
 public:
  // REQUIRES: labels.unit.size() == samples.size() > 0.
  MedianResampler(std::span<const double> samples, const UnitLabels& labels);
  // The median when each unit is taken `times[unit]` times. REQUIRES: not all are 0.
  [[nodiscard]] double median(std::span<const std::int32_t> times) const;
  [[nodiscard]] std::int32_t units() const { return units_; }

 private:
  [[nodiscard]] std::int64_t count_before(std::size_t cell,
                                          std::span<const std::int32_t> times) const;

  static constexpr std::size_t kCell = 128;  // samples
  std::int32_t units_;
  std::vector<double> sorted_;
  std::vector<std::int32_t> unit_;     // of the sorted samples
  std::vector<std::int32_t> before_;   // [cell][unit]: samples of the unit in earlier cells
  std::vector<std::int64_t> samples_;  // of each unit
};

// The draws of one replicate: a pure function of the replicate's number.
class UnitDraw {
 public:
  explicit UnitDraw(std::uint64_t replicate) : replicate_(replicate) {}
  // How often each of times.size() units is taken when as many are drawn.
  void draw(std::span<std::int32_t> times);

 private:
  std::uint32_t below(std::uint32_t bound);

  std::uint64_t replicate_, counter_ = 0;
  PhiloxBlock block_{};
  std::size_t used_ = 4;
};

// What a replicate's distance from the estimate is multiplied by, see above.
[[nodiscard]] double small_sample_stretch(double units, double degrees, double confidence);

constexpr int kReplicates = 4000;

}  // namespace ridgeline
