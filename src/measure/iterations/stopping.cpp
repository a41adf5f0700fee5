#include "measure/iterations/stopping.h"

#include <cmath>

#include "analysis/stats/summary.h"
#include "base/error.h"

namespace ridgeline {

void check(const StoppingRule& rule) {
  if (rule.iterations && *rule.iterations < 1) {
    bad_input("iterations {}: must be at least 1", *rule.iterations);
  }
  if (!(rule.relative_width > 0.0 && rule.relative_width < 2.0)) {
    bad_input("an interval of {} times the median: must be above 0 and below 2",
              rule.relative_width);
  }
  if (!(rule.max_seconds > 0.0) || !std::isfinite(rule.max_seconds)) {
    bad_input("{} seconds of measuring: must be above 0", rule.max_seconds);
  }
}

const char* text_of(StopReason reason) {
  switch (reason) {
    case StopReason::none:
      return "not ended";
    case StopReason::counted:
      return "all iterations done";
    case StopReason::precise:
      return "precise enough";
    case StopReason::enough_samples:
      return "maximum number of samples";
    case StopReason::time_is_up:
      return "time is up";
    case StopReason::interrupted:
      return "interrupted";
  }
  return "";
}

StopReason Stopping::after_block(std::span<const double> samples,
                                 std::span<const std::int64_t> blocks, double seconds) {
  if (reason_ != StopReason::none) return reason_;
  if (rule_.iterations) {
    if (static_cast<std::int64_t>(samples.size()) >= *rule_.iterations) {
      reason_ = StopReason::counted;
    }
    return reason_;
  }
  const auto count = static_cast<std::int64_t>(samples.size());
  const std::int64_t turns = blocks.empty() ? 0 : blocks.back() - blocks.front() + 1;
  if (count < rule_.min_samples || turns < rule_.min_blocks) return reason_;
  // An interval costs as much as many short iterations: it is worked out when there are a quarter
  // more samples than last time.
  if (samples.size() >= next_look_) {
    next_look_ = samples.size() + samples.size() / 4;
    const MedianInterval interval = block_bootstrap(samples, blocks);
    if (interval.high - interval.low <= rule_.relative_width * interval.median) {
      return reason_ = StopReason::precise;
    }
  }
  if (count >= rule_.max_samples) reason_ = StopReason::enough_samples;
  if (seconds >= rule_.max_seconds) reason_ = StopReason::time_is_up;
  return reason_;
}

}  // namespace ridgeline
