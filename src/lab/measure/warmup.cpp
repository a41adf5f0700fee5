#include "lab/measure/warmup.h"

#include "base/error.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kBetweenLooks = 2;

}  // namespace

void check(const WarmupPlan& plan) {
  if (plan.iterations && *plan.iterations < 0) {
    bad_input("warm-up {}: must not be negative", *plan.iterations);
  }
}

Warmup::Warmup(const WarmupPlan& plan) : plan_(plan), done_(plan.iterations == 0) {}

std::int64_t Warmup::next_count() const {
  const auto run = static_cast<std::int64_t>(seconds_.size());
  if (plan_.iterations) return *plan_.iterations - run;
  // The first one alone: it may take so long that no other is to follow.
  if (run == 0) return 1;
  return kBetweenLooks;
}

void Warmup::add(double seconds) {
  seconds_.push_back(seconds);
  total_ += seconds;
  if (plan_.iterations) {
    done_ = static_cast<std::int64_t>(seconds_.size()) >= *plan_.iterations;
    return;
  }
  decision_ = decide(plan_.rule, seconds_, total_);
  done_ = decision_.done();
}

std::string Warmup::text() const {
  if (plan_.iterations) return fmt::format("{} iterations, as asked for", *plan_.iterations);
  return done_ ? decision_.text() : "interrupted";
}

}  // namespace ridgeline
