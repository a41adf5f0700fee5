#include "train/schedule.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace ridgeline {
namespace {

std::vector<double> rates(const Schedule& schedule, double rate, std::int64_t epochs) {
  std::vector<double> list;
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    list.push_back(learning_rate_at(schedule, rate, epoch, epochs));
  }
  return list;
}

void expect_rates(const Schedule& schedule, double rate, const std::vector<double>& expected) {
  const std::vector<double> found =
      rates(schedule, rate, static_cast<std::int64_t>(expected.size()));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 1e-12) << "epoch " << i;
  }
}

TEST(Schedule, StepDropsByGamma) {
  expect_rates({.kind = Schedule::Kind::step, .step_size = 2, .gamma = 0.1}, 0.5,
               {0.5, 0.5, 0.05, 0.05, 0.005, 0.005, 0.0005});
}

TEST(Schedule, CosineFallsToZeroAfterTheLastEpoch) {
  // (1 + cos(pi e / 4)) / 2
  expect_rates({.kind = Schedule::Kind::cosine}, 0.2,
               {0.2, 0.2 * 0.85355339059327376, 0.1, 0.2 * 0.14644660940672624});
  EXPECT_NEAR(learning_rate_at({.kind = Schedule::Kind::cosine}, 0.2, 4, 4), 0.0, 1e-15);
}

TEST(Schedule, WarmupRisesFromAHundredthAndTheRestCountsFromThere) {
  expect_rates({.warmup = 2}, 1.0, {0.01, 0.505, 1.0, 1.0});
  expect_rates({.kind = Schedule::Kind::cosine, .warmup = 2}, 1.0,
               {0.01, 0.505, 1.0, 0.85355339059327376, 0.5, 0.14644660940672624});
  expect_rates({.kind = Schedule::Kind::step, .step_size = 2, .gamma = 0.5, .warmup = 1}, 1.0,
               {0.01, 1.0, 1.0, 0.5, 0.5, 0.25});
}

TEST(Schedule, SillyOnesAreRefused) {
  EXPECT_THROW(check_schedule({.step_size = 0}, 10), Error);
  EXPECT_THROW(check_schedule({.gamma = 0.0}, 10), Error);
  EXPECT_THROW(check_schedule({.warmup = 10}, 10), Error);
  EXPECT_THROW(check_schedule({.warmup = -1}, 10), Error);
  EXPECT_NO_THROW(check_schedule({.warmup = 9}, 10));
}

}  // namespace
}  // namespace ridgeline
