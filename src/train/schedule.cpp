#include "train/schedule.h"

#include <cmath>
#include <numbers>

#include "base/error.h"

namespace ridgeline {
namespace {

constexpr double kWarmupStart = 0.01;  // of the full rate, as torchvision's --lr-warmup-decay

}  // namespace

std::string Schedule::text() const {
  std::string text = kind == Kind::cosine ? "cosine"
                     : kind == Kind::step
                         ? fmt::format("times {} every {} epochs", gamma, step_size)
                         : "constant";
  if (warmup > 0) text += fmt::format(", warm-up of {} epoch{}", warmup, warmup == 1 ? "" : "s");
  return text;
}

void check_schedule(const Schedule& schedule, std::int64_t epochs) {
  if (schedule.step_size < 1) bad_input("step size {}: must be at least 1", schedule.step_size);
  if (!(schedule.gamma > 0.0 && std::isfinite(schedule.gamma))) {
    bad_input("gamma {}: must be above 0", schedule.gamma);
  }
  if (schedule.warmup < 0 || schedule.warmup >= epochs) {
    if (schedule.warmup == 0) return;
    bad_input("a warm-up of {} epochs in a training of {}: it must be shorter", schedule.warmup,
              epochs);
  }
}

double learning_rate_at(const Schedule& schedule, double rate, std::int64_t epoch,
                        std::int64_t epochs) {
  if (epoch < schedule.warmup) {
    const double share = static_cast<double>(epoch) / static_cast<double>(schedule.warmup);
    return rate * (kWarmupStart + (1.0 - kWarmupStart) * share);
  }
  const std::int64_t since = epoch - schedule.warmup;
  switch (schedule.kind) {
    case Schedule::Kind::constant:
      return rate;
    case Schedule::Kind::step:
      return rate * std::pow(schedule.gamma, static_cast<double>(since / schedule.step_size));
    case Schedule::Kind::cosine: {
      const double share =
          static_cast<double>(since) / static_cast<double>(epochs - schedule.warmup);
      return rate * (1.0 + std::cos(std::numbers::pi * share)) / 2.0;
    }
  }
  return rate;
}

}  // namespace ridgeline
