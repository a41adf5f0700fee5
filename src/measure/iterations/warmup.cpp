#include "measure/iterations/warmup.h"

#include <algorithm>

#include "analysis/stats/steadiness.h"
#include "base/error.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kBetweenLooks = 2;
constexpr std::int64_t kFewest = 3;  // however long they take
// A slow slope cannot be told from noise in a handful of iterations. So short ones are not steady
// before there are some, or before some time has passed.
constexpr std::int64_t kSome = 20;
constexpr double kSomeSeconds = 0.5;

}  // namespace

void check(const WarmupRule& rule) {
  if (rule.iterations && *rule.iterations < 0) {
    bad_input("warm-up {}: must not be negative", *rule.iterations);
  }
}

Warmup::Warmup(const WarmupRule& rule) : rule_(rule), done_(rule.iterations == 0) {}

std::int64_t Warmup::next_count() const {
  const auto run = static_cast<std::int64_t>(seconds_.size());
  if (rule_.iterations) return *rule_.iterations - run;
  // The first one alone: it may take so long that no other is to follow.
  if (run == 0) return 1;
  return std::min(kBetweenLooks, rule_.max_samples - run);
}

void Warmup::add(double seconds) {
  seconds_.push_back(seconds);
  total_ += seconds;
  if (rule_.iterations) {
    done_ = static_cast<std::int64_t>(seconds_.size()) >= *rule_.iterations;
    return;
  }
  const auto run = static_cast<std::int64_t>(seconds_.size());
  steady_ = (run >= kSome || total_ >= kSomeSeconds) && steady_end(seconds_);
  done_ = steady_ || run >= rule_.max_samples || (total_ >= rule_.max_seconds && run >= kFewest);
}

std::string Warmup::text() const {
  if (rule_.iterations) {
    return fmt::format("{} iteration{}, as requested", *rule_.iterations,
                       *rule_.iterations == 1 ? "" : "s");
  }
  if (!done_) return "interrupted";
  return steady_ ? "steady" : fmt::format("not steady after {} iterations", seconds_.size());
}

}  // namespace ridgeline
