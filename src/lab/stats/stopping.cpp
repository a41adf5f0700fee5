#include "lab/stats/stopping.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace ridgeline {
namespace {

std::int64_t blocks_in(std::span<const std::int64_t> block) {
  std::int64_t count = block.empty() ? 0 : 1;
  for (std::size_t i = 1; i < block.size(); ++i) count += block[i] != block[i - 1] ? 1 : 0;
  return count;
}

}  // namespace

std::string WarmupDecision::text() const {
  const auto held = fmt::format(
      "the last window differs by {:+.1f}% from the one before, {:.1f}% "
      "is allowed",
      100.0 * change, 100.0 * tolerance);
  switch (state) {
    case WarmupState::go_on:
      return "warming up: " + held;
    case WarmupState::steady:
      return "steady: " + held;
    case WarmupState::out_of_samples:
      return "not steady when the warm-up's steps were used up: " + held;
    case WarmupState::out_of_time:
      return "not steady when the warm-up's time was up: " + held;
  }
  return held;
}

WarmupDecision decide(const WarmupRule& rule, std::span<const double> seconds,
                      double elapsed_seconds) {
  ensure(rule.window > 0, "a warm-up window of {} samples", rule.window);
  WarmupDecision decision;
  const auto window = static_cast<std::size_t>(rule.window);
  const auto count = static_cast<std::int64_t>(seconds.size());
  if (seconds.size() >= 2 * window) {
    const Summary last = summarise(seconds.last(window));
    const Summary before = summarise(seconds.subspan(seconds.size() - 2 * window, window));
    decision.change = last.median / before.median - 1.0;
    // Two standard errors of the difference of two medians of `window` scattered samples. Of the
    // two scatters the smaller: a slope inside one window must not excuse itself.
    const double scatter = 1.4826 * std::min(last.mad, before.mad) / before.median;
    const double error = 1.2533 * scatter * std::sqrt(2.0 / static_cast<double>(window));
    decision.tolerance = std::max(rule.tolerance, 2.0 * error);
    if (std::abs(decision.change) <= decision.tolerance) {
      decision.state = WarmupState::steady;
      return decision;
    }
  }
  if (count >= std::max<std::int64_t>(rule.max_samples, 1)) {
    decision.state = WarmupState::out_of_samples;
  } else if (count > 0 && elapsed_seconds >= rule.max_seconds) {
    decision.state = WarmupState::out_of_time;
  }
  return decision;
}

StopDecision decide(const IntervalStop& rule, std::span<const double> samples,
                    std::span<const std::int64_t> block, double elapsed_seconds) {
  StopDecision decision;
  const auto count = static_cast<std::int64_t>(samples.size());
  if (count < std::max<std::int64_t>(rule.min_samples, 1)) return decision;
  decision.interval = block_bootstrap(samples, block, rule.confidence);
  decision.relative_width =
      (decision.interval.high - decision.interval.low) / decision.interval.median;
  if (blocks_in(block) >= rule.min_blocks && decision.relative_width <= rule.relative_width) {
    decision.state = StopState::tight;
  } else if (count >= rule.max_samples) {
    decision.state = StopState::out_of_samples;
  } else if (elapsed_seconds >= rule.max_seconds) {
    decision.state = StopState::out_of_time;
  }
  return decision;
}

}  // namespace ridgeline
