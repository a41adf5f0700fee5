#pragma once

// How much longer than their least time steps take, by kind, learnt from observations.
//
// An iteration takes the sum over its kinds of (least time x slowdown of the kind), and a constant
// for each step: launches, waking threads, what lies between. Slowdowns are found by least squares
// of relative errors. What the observations say little of stays near what was known before (the
// prior): shipped efficiencies, then those of the family of devices, then those of the device.

#include <map>
#include <span>
#include <string>

#include "predict/observation.h"

namespace ridgeline::predict {

struct Efficiencies {
  std::map<Kind, double> slowdown;  // 1 / the share of the roof
  double usual = 0.0;               // of a kind that was never seen
  double step_seconds = 0.0;        // for each step

  [[nodiscard]] bool knows(const Kind& kind) const { return slowdown.contains(kind); }
  [[nodiscard]] double of(const Kind& kind) const;
  [[nodiscard]] double seconds(const Kind& kind, const Part& part) const;
  [[nodiscard]] double seconds(const Demand& demand) const;
};

// `prior` may be null: then a single slowdown for all kinds, the middle of the observations', takes
// its place. REQUIRES: observations.
[[nodiscard]] Efficiencies learn(std::span<const Observation* const> seen,
                                 const Efficiencies* prior);

}  // namespace ridgeline::predict
