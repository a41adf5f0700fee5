#pragma once

// When enough has been measured: after a fixed number of iterations, or when the interval of the
// median is narrow enough or time is up, but never without a minimum of samples.

#include <cstdint>
#include <optional>
#include <span>

namespace ridgeline {

struct StoppingRule {
  std::optional<std::int64_t> iterations;  // a fixed number; the rest then does not count
  double relative_width = 0.02;            // of the median's 95% interval, low to high
  double max_seconds = 20.0;               // of the turns of one candidate
  std::int64_t max_samples = 20'000;
  // Always, whatever time says: an interval over fewer blocks is a guess at their spread.
  std::int64_t min_samples = 10, min_blocks = 6;
};

// Throws bad_input for settings that allow no measurement.
void check(const StoppingRule& rule);

enum class StopReason { none, counted, precise, enough_samples, time_is_up, interrupted };
[[nodiscard]] const char* text_of(StopReason reason);

// Watches one candidate.
class Stopping {
 public:
  explicit Stopping(const StoppingRule& rule) : rule_(rule) {}
  // After a block: all measured samples with their blocks, and the seconds that the candidate's
  // turns have taken. What was decided once stays so.
  StopReason after_block(std::span<const double> samples, std::span<const std::int64_t> blocks,
                         double seconds);
  [[nodiscard]] StopReason reason() const { return reason_; }

 private:
  StoppingRule rule_;
  StopReason reason_ = StopReason::none;
  std::size_t next_look_ = 0;  // samples at which the interval is worked out again
};

}  // namespace ridgeline
