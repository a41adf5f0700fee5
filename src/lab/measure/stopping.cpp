#include "lab/measure/stopping.h"

#include <cmath>

#include "base/error.h"

namespace ridgeline {

void check(const StoppingPlan& plan) {
  if (plan.iterations && *plan.iterations < 1) {
    bad_input("iterations {}: must be at least 1", *plan.iterations);
  }
  if (!(plan.rule.relative_width > 0.0 && plan.rule.relative_width < 2.0)) {
    bad_input("an interval of {} times the median: must lie above 0 and below 2",
              plan.rule.relative_width);
  }
  if (!(plan.rule.max_seconds > 0.0) || !std::isfinite(plan.rule.max_seconds)) {
    bad_input("{} seconds of measuring: must be above 0", plan.rule.max_seconds);
  }
}

const char* text_of(StopReason reason) {
  switch (reason) {
    case StopReason::none:
      return "not ended";
    case StopReason::counted:
      return "the iterations asked for";
    case StopReason::precise:
      return "precise enough";
    case StopReason::enough_samples:
      return "as many samples as are ever taken";
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
  if (plan_.iterations) {
    if (static_cast<std::int64_t>(samples.size()) >= *plan_.iterations) {
      reason_ = StopReason::counted;
    }
    return reason_;
  }
  // An interval costs as much as many short iterations: it is worked out when there are a quarter
  // more samples than last time, and when time is up.
  if (samples.size() < next_look_ && seconds < plan_.rule.max_seconds) return reason_;
  next_look_ = samples.size() + samples.size() / 4;
  switch (decide(plan_.rule, samples, blocks, seconds).state) {
    case StopState::go_on:
      break;
    case StopState::tight:
      reason_ = StopReason::precise;
      break;
    case StopState::out_of_samples:
      reason_ = StopReason::enough_samples;
      break;
    case StopState::out_of_time:
      reason_ = StopReason::time_is_up;
      break;
  }
  return reason_;
}

}  // namespace ridgeline
