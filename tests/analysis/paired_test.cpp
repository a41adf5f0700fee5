// Comparisons of runs that took turns, on simulated machines whose speed changes while they are
// measured.

#include "analysis/compare/paired.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "analysis/compare/verdict.h"
#include "base/philox.h"
#include "measure/iterations/blocks.h"

namespace ridgeline {
namespace {

// What disturbs a machine. Shares are of an iteration's time.
struct Disturbance {
  const char* name = "";
  double noise = 0.02;        // of each iteration by itself
  double walk = 0.0;          // a random walk of the speed: its deviation after a second
  double step = 0.0;          // the speed jumps between 1 and 1 + step
  double step_seconds = 0.3;  // on average so often
  double spikes = 0.0;        // the share of iterations that somebody interrupts
  double spike_ms = 6.0;      // for so long, on average
  double trend = 0.0;         // from the beginning to the end
  double lasting = 0.0;       // an autoregressive part: its deviation
  double lasting_ms = 20.0;   // and how long it lasts
  double first_place = 0.0;   // the first one of a block loses so much
};

constexpr std::array kMachines = {
    Disturbance{.name = "quiet"},
    Disturbance{.name = "random walk", .noise = 0.04, .walk = 0.15},
    Disturbance{.name = "steps", .noise = 0.03, .step = 0.2},
    Disturbance{.name = "spikes", .noise = 0.04, .spikes = 0.1},
    Disturbance{.name = "trend", .noise = 0.03, .trend = 0.3},
    Disturbance{.name = "autocorrelated", .noise = 0.03, .lasting = 0.08},
    Disturbance{
        .name = "slowly autocorrelated", .noise = 0.02, .lasting = 0.06, .lasting_ms = 200.0},
    Disturbance{.name = "places", .noise = 0.03, .first_place = 0.04},
    Disturbance{.name = "all of it",
                .noise = 0.04,
                .walk = 0.1,
                .step = 0.15,
                .spikes = 0.05,
                .trend = 0.1,
                .lasting = 0.05,
                .first_place = 0.02},
};

class Machine {
 public:
  Machine(const Disturbance& kind, double whole, std::uint64_t trial)
      : kind_(kind), whole_(whole), random_(77, RandomStream::synthetic, trial) {
    lasting_ = random_.normal();
  }
  [[nodiscard]] double now() const { return now_; }

  // One iteration that takes `seconds` on an undisturbed machine.
  double run(double seconds, bool first) {
    const double passed = seconds;  // the state changes with time, about
    walk_ += kind_.walk * std::sqrt(passed) * random_.normal();
    if (uniform() < passed / kind_.step_seconds) slow_ = !slow_;
    const double keeps = std::exp(-passed / (1e-3 * kind_.lasting_ms));
    lasting_ = keeps * lasting_ + std::sqrt(1.0 - keeps * keeps) * random_.normal();
    double taken = seconds * std::exp(kind_.noise * random_.normal() + walk_ +
                                      kind_.lasting * lasting_ + kind_.trend * now_ / whole_);
    if (slow_) taken *= 1.0 + kind_.step;
    if (first) taken *= 1.0 + kind_.first_place;
    if (uniform() < kind_.spikes) taken += -1e-3 * kind_.spike_ms * std::log(1.0 - uniform());
    now_ += taken;
    return taken;
  }

 private:
  double uniform() { return (static_cast<double>(random_.below(1U << 30)) + 0.5) / (1U << 30); }

  Disturbance kind_;
  double whole_, now_ = 0.0, walk_ = 0.0, lasting_ = 0.0;
  bool slow_ = false;
  PhiloxSequence random_;
};

struct Design {
  double step_seconds = 2.8e-3, seconds = 4.0;
  std::int64_t turn = 7;
};
struct Pair {
  RunSeries a, b;
};

// As bench takes turns: blocks of random but balanced order, the first iteration of a turn is none.
Pair take_turns(const Disturbance& kind, const Design& design, double slow_down,
                std::uint64_t trial) {
  Machine machine(kind, design.seconds, trial);
  const BlockOrder orders(2, trial);
  Pair pair;
  for (std::int64_t block = 0; machine.now() < design.seconds; ++block) {
    bool first = true;
    for (const std::size_t who : orders.order(block)) {
      RunSeries& series = who == 0 ? pair.a : pair.b;
      const double seconds = design.step_seconds * (who == 0 ? 1.0 : slow_down);
      (void)machine.run(seconds, first);
      for (std::int64_t i = 0; i < design.turn; ++i) {
        series.at_seconds.push_back(machine.now());
        series.seconds.push_back(machine.run(seconds, first));
        series.turn.push_back(block);
        series.process.push_back(0);
      }
      first = false;
    }
  }
  return pair;
}

struct Tally {
  int faster = 0, slower = 0, missed = 0;
  double width = 0.0;
};
Tally tally(const Disturbance& kind, const Design& design, double slow_down, int trials) {
  Tally counts;
  for (int trial = 0; trial < trials; ++trial) {
    const Pair pair = take_turns(kind, design, slow_down, static_cast<std::uint64_t>(trial));
    const Comparison result = compare(pair.a, pair.b, {.side_by_side = true});
    EXPECT_TRUE(result.paired);
    counts.faster += result.verdict == Verdict::faster ? 1 : 0;
    counts.slower += result.verdict == Verdict::slower ? 1 : 0;
    counts.missed += slow_down < result.low || slow_down > result.high ? 1 : 0;
    counts.width += (result.high - result.low) / trials;
  }
  return counts;
}

TEST(Paired, MidmeanIsTheMeanOfTheMiddleHalf) {
  EXPECT_DOUBLE_EQ(midmean(std::vector<double>{7.0}), 7.0);
  EXPECT_DOUBLE_EQ(midmean(std::vector<double>{1.0, 2.0, 3.0, 1000.0}), 2.5);
  EXPECT_DOUBLE_EQ(midmean(std::vector<double>{-1000.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 1000.0}),
                   3.5);
  // Of six values one and a half fall away on each side: 2 and 5 count by half.
  EXPECT_DOUBLE_EQ(midmean(std::vector<double>{1.0, 2.0, 3.0, 4.0, 5.0, 60.0}), 3.5);
}

TEST(Paired, ATurnOfTwoMediansIsOneRatio) {
  RunSeries a, b;
  for (std::int64_t turn = 0; turn < 2; ++turn) {
    for (const double seconds : {1.0, 2.0, 90.0}) {
      a.seconds.push_back(seconds);
      b.seconds.push_back(seconds * static_cast<double>(turn + 1));
      a.turn.push_back(turn);
      b.turn.push_back(turn);
    }
  }
  const std::vector<std::int64_t> turns = {0, 1};
  const std::vector<double> ratios = turn_log_ratios(a, b, turns);
  EXPECT_DOUBLE_EQ(ratios[0], 0.0);
  EXPECT_DOUBLE_EQ(ratios[1], std::log(2.0));
}

TEST(SlowPaired, OnEveryMachineTheSameIsSeldomCalledDifferentAndFivePercentAreFound) {
  constexpr int kTrials = 40;
  int false_alarms = 0, missed = 0;
  for (const Disturbance& machine : kMachines) {
    const Tally alike = tally(machine, {}, 1.0, kTrials);
    const Tally slowed = tally(machine, {}, 1.05, kTrials);
    false_alarms += alike.faster + alike.slower;
    missed += alike.missed + slowed.missed;
    EXPECT_GE(slowed.slower, kTrials * 8 / 10) << machine.name;
    EXPECT_EQ(slowed.faster, 0) << machine.name;
  }
  // 1% of 360, and of 720, and what chance makes of that.
  EXPECT_LE(false_alarms, 8);
  EXPECT_LE(missed, 16);
}

TEST(Paired, ShortTurnsCancelWhatLongOnesDoNot) {
  const Disturbance& walk = kMachines[1];
  const double by_short = tally(walk, {.turn = 7}, 1.0, 10).width;
  const double by_long = tally(walk, {.turn = 70}, 1.0, 10).width;
  EXPECT_LT(3.0 * by_short, by_long);
}

TEST(Paired, TheRatioHoldsStillWhereThatOfTheMediansDrifts) {
  const Disturbance& steps = kMachines[2];
  double turns = 0.0, medians = 0.0;
  for (std::uint64_t trial = 0; trial < 20; ++trial) {
    const Pair pair = take_turns(steps, {}, 1.0, trial);
    const Comparison result = compare(pair.a, pair.b, {.side_by_side = true});
    turns += std::abs(std::log(result.ratio));
    medians += std::abs(std::log(result.median_b / result.median_a));
  }
  EXPECT_LT(2.0 * turns, medians);
}

}  // namespace
}  // namespace ridgeline
