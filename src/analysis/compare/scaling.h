#pragma once

// What more ranks gain: runs of the same work by different numbers of ranks, each against the one
// with the fewest.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/compare/run_series.h"
#include "store/identity.h"

namespace ridgeline {

struct ScalingRun {
  Work work;
  Executor executor;
  RunSeries series;  // REQUIRES: not empty
  std::string call;  // runs that took turns have the same; empty: nothing is known
};

struct ScaledRatio {
  double value = 1.0, low = 1.0, high = 1.0;
  bool range = false;  // low and high are those of few samples: no interval
};

// Strong: all ranks share the same batch. Weak: each has a batch of the same size.
struct ScalingPoint {
  std::size_t run = 0, base = 0;  // the base is the run with the fewest ranks
  bool weak = false;
  double speedup = 1.0;    // samples per second, over those of the base
  ScaledRatio efficiency;  // the same for each rank; 1: no rank is slowed down by others
  // Of ranks that exchange gradients: the time of as many that exchange nothing over theirs.
  std::optional<ScaledRatio> of_unconnected;
};

// In the order of the runs; those that have no partner with another number of ranks are left out.
[[nodiscard]] std::vector<ScalingPoint> scaling_points(std::span<const ScalingRun> runs);

}  // namespace ridgeline
