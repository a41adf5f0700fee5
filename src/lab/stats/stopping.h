#pragma once

// When to begin measuring, and when to end: rules over the samples so far. They always come to an
// end, and they never end without samples.

#include <cstdint>
#include <span>
#include <string>

#include "lab/stats/summary.h"

namespace ridgeline {

// Warm-up ends when the last window is as fast as the one before it, or at a bound.
struct WarmupRule {
  std::int64_t window = 5;  // samples; at least two windows are run
  double tolerance = 0.02;  // relative; widened to what the scatter of the windows allows
  std::int64_t max_samples = 200;
  double max_seconds = 20.0;
};

enum class WarmupState { go_on, steady, out_of_samples, out_of_time };

struct WarmupDecision {
  WarmupState state = WarmupState::go_on;
  double change = 0.0;     // relative, of the last window's median against the one before; 0 before
  double tolerance = 0.0;  // that it was held against
  [[nodiscard]] bool done() const { return state != WarmupState::go_on; }
  [[nodiscard]] std::string text() const;  // "steady: the last window …"
};

// `seconds`: times of the warm-up steps so far, the first one included (it is never part of the
// verdict once two later windows exist). `elapsed_seconds`: of the warm-up.
[[nodiscard]] WarmupDecision decide(const WarmupRule& rule, std::span<const double> seconds,
                                    double elapsed_seconds);

// Measuring ends when the interval of the median is tight enough, or at a bound. The bounds are
// soft against min_samples: a run has at least that many.
struct IntervalStop {
  double relative_width = 0.02;  // of the interval, low to high, to the median
  double confidence = 0.95;
  std::int64_t min_samples = 30;
  std::int64_t min_blocks = 6;  // an interval over fewer blocks is a guess at their spread
  std::int64_t max_samples = 200'000;
  double max_seconds = 30.0;
};

enum class StopState { go_on, tight, out_of_samples, out_of_time };

struct StopDecision {
  StopState state = StopState::go_on;
  MedianInterval interval;      // so far; all 0 without samples
  double relative_width = 0.0;  // so far
  [[nodiscard]] bool done() const { return state != StopState::go_on; }
};

// `samples` in order of measuring with their `block`s; call it after each block.
[[nodiscard]] StopDecision decide(const IntervalStop& rule, std::span<const double> samples,
                                  std::span<const std::int64_t> block, double elapsed_seconds);

}  // namespace ridgeline
