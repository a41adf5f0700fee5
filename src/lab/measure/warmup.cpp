#include "lab/measure/warmup.h"

#include "base/error.h"
#include "lab/stats/steadiness.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kFewest = 6, kBetweenLooks = 2;

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
  return run < kFewest ? kFewest - run : kBetweenLooks;
}

void Warmup::add(double seconds) {
  seconds_.push_back(seconds);
  total_ += seconds;
  const auto run = static_cast<std::int64_t>(seconds_.size());
  if (rule_.iterations) {
    done_ = run >= *rule_.iterations;
    return;
  }
  if (run < kFewest) return;
  const bool is_steady = steady_end(seconds_);
  done_ = is_steady || run >= rule_.most_iterations || total_ >= rule_.most_seconds;
  steady_ = is_steady || !done_;
}

}  // namespace ridgeline
