#pragma once

// The gap ledger: why B takes `ratio` times as long as A, in factors that multiply to the ratio.
//
// For each run: T, the median iteration; W, the part of it that waits for data and that no work
// hides; S, the sum of the steps of its plan, each timed; R, the least time of that plan at the
// measured ceilings (roofline); f, the clock during the run, and g, the clock during the ceilings.
//
//   T  =  T/(T-W)  x  (T-W)/S  x  S f/(R g)  x  g/f  x  R
//
// The ratio of each part between B and A is a factor: data wait, launch gaps and idle, efficiency,
// clock. R depends on the work of the plan and on the hardware; it is split by giving one run's
// plan the other one's ceilings (the geometric mean of both ways). Where a part is not known, its
// name joins the factor that holds it: no factor is 1 because it was not measured.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/roofline/roofs.h"
#include "store/records.h"

namespace ridgeline {

// What is known of one run.
struct GapSide {
  double seconds = 0.0;  // T
  std::optional<double> data_wait_seconds;
  std::optional<double> device_seconds;  // takes the place of S where there are no steps
  std::vector<StepTime> steps;
  Roofs roofs;                              // of its device; empty: not measured
  std::optional<double> clock_mhz;          // f
  std::optional<double> ceiling_clock_mhz;  // g
  // For runs with different batches: 1 / batch. Times and work are multiplied by it.
  double scale = 1.0;
};

struct GapFactor {
  std::string name;      // "data wait", or several, "efficiency and clock"
  double factor = 1.0;   // above 1: it makes B slower
  std::string evidence;  // the numbers that it comes from
};

struct GapLedger {
  double ratio = 1.0;  // of the sides' seconds, B to A
  std::vector<GapFactor> factors;
};

// REQUIRES: positive seconds. The product of the factors is the ratio to within rounding, or it is
// a defect of the program.
[[nodiscard]] GapLedger gap_ledger(const GapSide& a, const GapSide& b);

// The factors are of medians. Of runs that were compared turn by turn, what the machine's changes
// made of the medians is a factor of its own, "uneven machine", so that the product is `ratio`.
void add_turns(double ratio, GapLedger& ledger);

// What the samples, readings and ceilings of a run say. `seconds` is its median iteration.
[[nodiscard]] GapSide gap_side(const RunRecord& run, double seconds,
                               std::span<const Sample> samples, std::vector<StepTime> steps,
                               std::span<const Reading> readings,
                               std::span<const Ceiling> ceilings);

}  // namespace ridgeline
