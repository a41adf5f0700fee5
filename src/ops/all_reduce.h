#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace ridgeline {

struct OpDef;

// Sums over the ranks of a job. Every rank gets the same bits.
struct AllReduceAttributes {
  int ranks = 1;
  double weight = 1.0;      // of this rank's values in the sum
  double scale = 1.0;       // what this rank makes of the sum
  bool in_place = false;    // the results are new versions of the inputs
  DType wire = DType::f32;  // bf16, f16: how f32 and bf16 travel; sums are made in f32 all the same
};
extern const OpDef all_reduce_op;  // (value...) -> sum...

// The mean and variance of a batch whose rows are divided among ranks, from those of each rank's
// rows: weights are shares of the rows and add up to 1. Merged around the common mean, so that
// nothing cancels: variance = Σ w (variance + (mean - common mean)²).
struct MergeStatisticsAttributes {
  int ranks = 1;
  double weight = 1.0;
};
extern const OpDef merge_statistics_op;  // (mean, variance) -> mean, variance

// One channel's statistics merged, of `ranks` values each.
struct MeanVariance {
  double mean = 0.0, variance = 0.0;
};
struct WeightedStatistics {
  double weight = 0.0, mean = 0.0, variance = 0.0;
};
template <typename At>  // WeightedStatistics at(int rank)
[[nodiscard]] MeanVariance merged_statistics(int ranks, At&& at) {
  MeanVariance merged;
  for (int rank = 0; rank < ranks; ++rank) merged.mean += at(rank).weight * at(rank).mean;
  for (int rank = 0; rank < ranks; ++rank) {
    const WeightedStatistics one = at(rank);
    const double off = one.mean - merged.mean;
    merged.variance += one.weight * (one.variance + off * off);
  }
  return merged;
}

}  // namespace ridgeline
