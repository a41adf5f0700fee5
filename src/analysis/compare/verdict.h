#pragma once

// Is B faster than A? The ratio of their times, an interval for it, and one of four answers.
// docs/method-compare.md tells the method and why.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "analysis/compare/noise.h"
#include "analysis/compare/run_series.h"

namespace ridgeline {

enum class Verdict {
  faster,     // B takes less time: the interval lies below 1, the ratio beyond the margin
  slower,     // B takes more time, likewise
  same,       // the whole interval lies within the margin around 1
  undecided,  // neither is shown
};
[[nodiscard]] std::string_view name_of(Verdict verdict);

struct VerdictOptions {
  double margin = 0.02;  // differences up to this do not matter
  double alpha = 0.01;   // the interval misses the true ratio in this share of comparisons
  // Whether both were measured in one call. Then turns that they took with each other are held
  // against each other, and no variation from run to run is added.
  bool side_by_side = false;
};

struct Comparison {
  Verdict verdict = Verdict::undecided;
  // Of B's time to A's: above 1, B is slower. Of runs that took turns it is the middle of the
  // ratios within turns (paired.h), else that of the medians.
  double ratio = 1.0;
  double low = 0.0, high = 0.0;  // holds the true ratio with confidence 1 - alpha
  bool ranges = false;  // or is the range of the samples' ratios: they are too few for an interval
  double median_a = 0.0, median_b = 0.0;
  std::int64_t samples_a = 0, samples_b = 0;
  std::int64_t units_a = 0, units_b = 0;  // that were drawn: blocks, or what takes their place
  bool paired = false;                    // turns of A were compared with turns of B
  // Relative standard deviations of the ratio: from the blocks inside the runs, beyond that from
  // process to process, and from run to run. Nothing: unknown (one process; no A/A runs), or not
  // added (side by side).
  double within = 0.0;
  std::optional<double> between_processes, between_runs;
  std::string reason;  // one sentence
};

// REQUIRES: at least one sample each, all positive; margin > 0; 0 < alpha < 1.
[[nodiscard]] Comparison compare(const RunSeries& a, const RunSeries& b,
                                 const VerdictOptions& options,
                                 const std::optional<NoiseFloor>& floor = std::nullopt);

// The answer for an interval; what compare() does at its end.
[[nodiscard]] Verdict verdict_of(double ratio, double low, double high, double margin);

// No machine changes its own speed by this factor.
inline constexpr double kApart = 2.0;

// The answer that a few samples give: every one of B takes less than half of the time of any of A,
// or more than twice. REQUIRES: at least one each.
[[nodiscard]] Verdict verdict_of_few(std::span<const double> a, std::span<const double> b);

}  // namespace ridgeline
