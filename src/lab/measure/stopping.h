#pragma once

// When enough has been measured: after a fixed number of iterations, or when the interval of the
// median is narrow enough or time is up, but never without a minimum of samples.

#include <cstdint>
#include <optional>
#include <span>

#include "lab/stats/stopping.h"

namespace ridgeline {

struct StoppingPlan {
  std::optional<std::int64_t> iterations;  // a fixed number; nothing: by the rule
  IntervalStop rule = {};
};

// Throws bad_input for what nobody can measure by.
void check(const StoppingPlan& plan);

enum class StopReason { none, counted, precise, enough_samples, time_is_up, interrupted };
[[nodiscard]] const char* text_of(StopReason reason);

// Watches one candidate.
class Stopping {
 public:
  explicit Stopping(const StoppingPlan& plan) : plan_(plan) {}
  // After a block: all measured samples with their blocks, and the seconds that the candidate's
  // turns have taken. What was decided once stays so.
  StopReason after_block(std::span<const double> samples, std::span<const std::int64_t> blocks,
                         double seconds);
  [[nodiscard]] StopReason reason() const { return reason_; }

 private:
  StoppingPlan plan_;
  StopReason reason_ = StopReason::none;
  std::size_t next_look_ = 0;  // samples at which the interval is worked out again
};

}  // namespace ridgeline
