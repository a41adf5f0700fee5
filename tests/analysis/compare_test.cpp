// Verdicts and their error rates on simulated runs, unlike work, the gap ledger.

#include <gtest/gtest.h>

#include <cmath>

#include "analysis/compare/alike.h"
#include "analysis/compare/gap.h"
#include "analysis/compare/verdict.h"
#include "base/error.h"
#include "base/philox.h"
#include "store/identity_fields.h"
#include "support/vary_identity.h"

namespace ridgeline {
namespace {

TEST(Verdict, FollowsTheIntervalAndTheMargin) {
  EXPECT_EQ(verdict_of(1.05, 1.01, 1.09, 0.02), Verdict::slower);
  EXPECT_EQ(verdict_of(0.95, 0.91, 0.99, 0.02), Verdict::faster);
  EXPECT_EQ(verdict_of(1.00, 0.985, 1.015, 0.02), Verdict::same);
  // A difference, but none that matters.
  EXPECT_EQ(verdict_of(1.01, 1.005, 1.015, 0.02), Verdict::same);
  EXPECT_EQ(verdict_of(1.00, 0.95, 1.05, 0.02), Verdict::undecided);
  EXPECT_EQ(verdict_of(1.05, 0.99, 1.11, 0.02), Verdict::undecided);
  // On which side of the margin?
  EXPECT_EQ(verdict_of(1.018, 1.005, 1.031, 0.02), Verdict::undecided);
}

// Two runs that take turns on a machine whose mood changes slowly.
struct SimulatedPair {
  int turns = 10, per_turn = 10;
  double noise = 0.02, mood = 1.0, slow_down = 1.0, run_effect = 0.0;
  int processes = 1;
};
struct Pair {
  RunSeries a, b;
};
Pair simulate(const SimulatedPair& kind, std::uint64_t trial) {
  PhiloxSequence random(21, RandomStream::synthetic, trial);
  Pair pair;
  double mood = random.normal(), clock = 0.0;
  const double effect_a = kind.run_effect * random.normal();
  const double effect_b = kind.run_effect * random.normal();
  const auto turn = [&](RunSeries& series, int process, int number, double level) {
    mood = 0.9 * mood + std::sqrt(1.0 - 0.81) * random.normal();
    double state = random.normal();
    for (int i = 0; i < kind.per_turn; ++i) {
      state = 0.5 * state + std::sqrt(0.75) * random.normal();
      series.seconds.push_back(level * std::exp(kind.noise * (state + kind.mood * mood)));
      series.turn.push_back((std::int64_t{process} << 32) + number);
      series.process.push_back(process);
      series.at_seconds.push_back(clock += 1.0);
    }
  };
  for (int process = 0; process < kind.processes; ++process) {
    for (int number = 0; number < kind.turns; ++number) {
      turn(pair.a, process, number, std::exp(effect_a));
      turn(pair.b, process, number, kind.slow_down * std::exp(effect_b));
    }
  }
  return pair;
}

struct Tally {
  int faster = 0, slower = 0, same = 0, undecided = 0, missed = 0;
};
Tally tally(const SimulatedPair& kind, bool side_by_side, int trials) {
  Tally counts;
  for (int trial = 0; trial < trials; ++trial) {
    const Pair pair = simulate(kind, static_cast<std::uint64_t>(trial));
    const Comparison result = compare(pair.a, pair.b, {.side_by_side = side_by_side});
    counts.faster += result.verdict == Verdict::faster ? 1 : 0;
    counts.slower += result.verdict == Verdict::slower ? 1 : 0;
    counts.same += result.verdict == Verdict::same ? 1 : 0;
    counts.undecided += result.verdict == Verdict::undecided ? 1 : 0;
    counts.missed += kind.slow_down < result.low || kind.slow_down > result.high ? 1 : 0;
  }
  return counts;
}

TEST(Verdict, SimulatedRunsOfTheSameAreSeldomCalledDifferent) {
  for (const bool side_by_side : {true, false}) {
    const Tally counts = tally({}, side_by_side, 100);
    EXPECT_LE(counts.faster + counts.slower, 2);
    EXPECT_LE(counts.missed, 4);
  }
}

TEST(Verdict, ASlowDownOfFivePercentIsFound) {
  const SimulatedPair kind = {.slow_down = 1.05};
  for (const bool side_by_side : {true, false}) {
    const Tally counts = tally(kind, side_by_side, 100);
    EXPECT_GE(counts.slower, 80) << side_by_side;
    EXPECT_EQ(counts.faster, 0);
    EXPECT_LE(counts.missed, 4);
  }
}

TEST(Verdict, QuietRunsAreCalledTheSame) {
  const Tally counts = tally({.turns = 20, .noise = 0.01}, true, 50);
  EXPECT_GE(counts.same, 40);
}

TEST(Verdict, TurnsSideBySideCancelTheMood) {
  const Pair pair = simulate({.turns = 20, .mood = 4.0}, 5);
  const Comparison together = compare(pair.a, pair.b, {.side_by_side = true});
  const Comparison apart = compare(pair.a, pair.b, {});
  EXPECT_TRUE(together.paired);
  EXPECT_FALSE(apart.paired);
  EXPECT_DOUBLE_EQ(apart.ratio, apart.median_b / apart.median_a);
  EXPECT_LT(together.high - together.low, 0.7 * (apart.high - apart.low));
}

TEST(Verdict, TurnsThatDidNotAlternateAreNotPaired) {
  Pair pair = simulate({}, 1);
  for (double& at : pair.b.at_seconds) at += 10000.0;
  EXPECT_TRUE(shared_turns(pair.a, pair.b).empty());
  EXPECT_FALSE(compare(pair.a, pair.b, {.side_by_side = true}).paired);
}

TEST(Verdict, RunsOfDifferentLengthShareWhatTheyCan) {
  Pair pair = simulate({.turns = 20, .slow_down = 1.05}, 2);
  for (auto* list : {&pair.a.seconds, &pair.a.at_seconds}) list->resize(100);
  for (auto* list : {&pair.a.turn, &pair.a.process}) list->resize(100);
  const Comparison result = compare(pair.a, pair.b, {.side_by_side = true});
  EXPECT_TRUE(result.paired);
  EXPECT_EQ(result.samples_a, 100);
  EXPECT_EQ(result.samples_b, 200);
  EXPECT_LT(result.low, 1.05);
  EXPECT_GT(result.high, 1.05);
}

TEST(Verdict, ReversingTheRunsReversesTheAnswer) {
  const Pair pair = simulate({.slow_down = 1.1}, 4);
  const Comparison forth = compare(pair.a, pair.b, {.side_by_side = true});
  const Comparison back = compare(pair.b, pair.a, {.side_by_side = true});
  EXPECT_EQ(forth.verdict, Verdict::slower);
  EXPECT_EQ(back.verdict, Verdict::faster);
  EXPECT_NEAR(forth.ratio * back.ratio, 1.0, 1e-12);
  EXPECT_NEAR(forth.low * back.high, 1.0, 1e-3);
}

TEST(Verdict, TheNoiseFloorWidensTheInterval) {
  const Pair pair = simulate({.mood = 0.0, .slow_down = 1.04}, 6);
  const Comparison bare = compare(pair.a, pair.b, {});
  EXPECT_EQ(bare.verdict, Verdict::slower);
  // Ten repetitions whose medians scatter by 3%.
  std::vector<LogMedian> repetitions;
  PhiloxSequence random(3, RandomStream::synthetic, 0);
  for (int i = 0; i < 10; ++i) repetitions.push_back({0.03 * random.normal(), 1e-6});
  const auto floor = noise_floor(std::span(&repetitions, 1));
  ASSERT_TRUE(floor);
  EXPECT_EQ(floor->runs, 10);
  EXPECT_NEAR(floor->deviation(), 0.03, 0.015);
  const Comparison careful = compare(pair.a, pair.b, {}, floor);
  EXPECT_EQ(careful.verdict, Verdict::undecided);
  EXPECT_LT(careful.low, bare.low);
  EXPECT_GT(careful.high, bare.high);
  // Side by side the runs share what differs from run to run.
  EXPECT_EQ(compare(pair.a, pair.b, {.side_by_side = true}, floor).verdict, Verdict::slower);
}

TEST(Verdict, RepetitionsThatScatterNoMoreThanTheirSamplesAddNothing) {
  const auto floor = noise_floor(std::vector<std::vector<LogMedian>>{
      {{0.010, 4e-4}, {-0.012, 4e-4}, {0.003, 4e-4}}, {{1.0, 1.0}}});
  ASSERT_TRUE(floor);
  EXPECT_EQ(floor->deviation(), 0.0);
  EXPECT_EQ(floor->run.degrees, 2.0);
  EXPECT_FALSE(noise_floor(std::vector<std::vector<LogMedian>>{{{0.0, 1.0}}, {{0.0, 1.0}}}));
}

TEST(Verdict, VariationFromProcessToProcessIsPartOfIt) {
  // Every process runs at a level of its own, B's beside A's by chance.
  Pair pair = simulate({.turns = 6, .noise = 0.005, .mood = 0.0, .processes = 4}, 7);
  const double levels[] = {1.00, 1.06, 0.97, 1.05};
  Pair shaken = pair;
  for (std::size_t i = 0; i < shaken.b.seconds.size(); ++i) {
    shaken.b.seconds[i] *= levels[shaken.b.process[i]];
  }
  const Comparison calm = compare(pair.a, pair.b, {.side_by_side = true});
  const Comparison wild = compare(shaken.a, shaken.b, {.side_by_side = true});
  ASSERT_TRUE(calm.between_processes && wild.between_processes);
  EXPECT_LT(std::hypot(calm.within, *calm.between_processes), 0.005);
  // Levels that stay for a whole process show as correlated turns already, or as what is beyond.
  EXPECT_GT(std::hypot(wild.within, *wild.between_processes), 0.015);
  EXPECT_EQ(calm.verdict, Verdict::same);
  EXPECT_EQ(wild.verdict, Verdict::undecided);
}

TEST(Verdict, VarianceComponentsAddUpAfterSatterthwaite) {
  const VarianceComponent parts[] = {{4.0, 8.0}, {2.0, 4.0}};
  const VarianceComponent sum = sum_of(parts);
  EXPECT_DOUBLE_EQ(sum.variance, 6.0);
  EXPECT_DOUBLE_EQ(sum.degrees, 36.0 / (16.0 / 8.0 + 4.0 / 4.0));
}

TEST(Verdict, TooFewSamplesDecideNothing) {
  RunSeries one;
  one.seconds = {1.0};
  one.turn = one.process = {0};
  one.at_seconds = {0.0};
  RunSeries other = one;
  other.seconds = {2.0};
  const Comparison result = compare(one, other, {});
  EXPECT_EQ(result.verdict, Verdict::undecided);
  EXPECT_EQ(result.ratio, 2.0);
  EXPECT_THROW((void)compare(one, {}, {}), Error);
}

RunSeries of_times(std::vector<double> seconds) {
  RunSeries series;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    series.turn.push_back(0);
    series.process.push_back(0);
    series.at_seconds.push_back(static_cast<double>(i));
  }
  series.seconds = std::move(seconds);
  return series;
}

TEST(Verdict, FewSamplesDecideWhereAllLieFarApart) {
  const RunSeries fast = of_times({0.9, 1.0}), slow = of_times({21.0, 40.0});
  const Comparison slower = compare(fast, slow, {}), faster = compare(slow, fast, {});
  EXPECT_EQ(slower.verdict, Verdict::slower);
  EXPECT_EQ(faster.verdict, Verdict::faster);
  EXPECT_TRUE(slower.ranges);
  EXPECT_DOUBLE_EQ(slower.low, 21.0);
  EXPECT_DOUBLE_EQ(slower.high, 40.0 / 0.9);
  EXPECT_NE(slower.reason.find("factor of 2"), std::string::npos) << slower.reason;
  // Less than that a machine may do to itself.
  EXPECT_EQ(compare(fast, of_times({1.9, 40.0}), {}).verdict, Verdict::undecided);
  // With blocks to draw, an interval that is too wide for them.
  RunSeries uneven = of_times({1.0, 1.3, 1.0, 1.2, 1.1, 1.3, 0.9, 1.0, 1.2, 1.0});
  for (std::size_t i = 5; i < 10; ++i) uneven.turn[i] = 1;
  RunSeries far = uneven;
  for (double& seconds : far.seconds) seconds *= 40.0;
  EXPECT_EQ(compare(uneven, far, {}).verdict, Verdict::slower);
}

TEST(Verdict, ConstantTimesAreTheSame) {
  RunSeries series;
  for (int i = 0; i < 60; ++i) {
    series.seconds.push_back(0.5);
    series.turn.push_back(i / 10);
    series.process.push_back(0);
    series.at_seconds.push_back(i);
  }
  const Comparison result = compare(series, series, {});
  EXPECT_EQ(result.verdict, Verdict::same);
  EXPECT_NEAR(result.low, 1.0, 1e-12);
  EXPECT_NEAR(result.high, 1.0, 1e-12);
}

TEST(Alike, DifferencesAreNamedByTheirLabels) {
  RunRecord run;
  run.work.model = "mlp";
  run.work.batch = 64;
  EXPECT_TRUE(work_differences(run, run).empty());
  EXPECT_TRUE(executor_differences(run, run).empty());
  RunRecord other = run;
  other.work.batch = 128;
  other.work.precision = "bf16";
  other.work.loader = true;
  other.executor.threads = 4;
  EXPECT_EQ(differences_text(work_differences(run, other)),
            "batch: 64 against 128; precision: fp32 against bf16; batches through the loader: no "
            "against yes");
  EXPECT_EQ(differences_text(executor_differences(run, other)), "threads: none against 4");
}

// Options of a training that were not told apart once.
TEST(Alike, RunsWithOtherOptionsAreNoRepetitions) {
  RunRecord run;
  run.work.model = "mlp";
  run.work.epochs = 3;
  run.executor.backend = "native";
  EXPECT_TRUE(repeats(run, run));
  std::vector<RunRecord> others(5, run);
  others[0].executor.recompute = true;
  others[1].executor.disabled_passes = {"fusion"};
  others[2].work.init = "he";
  others[3].work.augment = "flip";
  others[4].work.epochs = 4;
  for (const RunRecord& other : others) EXPECT_FALSE(repeats(run, other));
  EXPECT_EQ(differences_text(work_differences(run, others[2])),
            "initial weights: pytorch against he");
}

// Nothing of a run can be changed without its being told.
TEST(Alike, EveryFieldOfTheIdentityCounts) {
  const RunRecord run;
  for (const IdentityField& field : identity_fields()) {
    RunRecord other = run;
    testing::vary(other, field.name);
    const auto work = work_differences(run, other), executor = executor_differences(run, other);
    EXPECT_EQ(work.size(), field.of_work ? 1U : 0U) << field.name;
    EXPECT_EQ(executor.size(), field.of_work ? 0U : 1U) << field.name;
    EXPECT_FALSE(repeats(run, other)) << field.name;
  }
}

double product(const GapLedger& ledger) {
  double all = 1.0;
  for (const GapFactor& factor : ledger.factors) all *= factor.factor;
  return all;
}

double factor_of(const GapLedger& ledger, const std::string& name) {
  for (const GapFactor& factor : ledger.factors) {
    if (factor.name == name) return factor.factor;
  }
  ADD_FAILURE() << "no factor " << name;
  return 0.0;
}

// One step of 1 GFLOP and 10 MB at 100 GFLOP/s and 10 GB/s: 10 ms by its FLOPs, 1 ms by its bytes.
GapSide known_side() {
  GapSide side;
  side.seconds = 0.030;
  side.data_wait_seconds = 0.002;
  StepTime step;
  step.seconds = 0.025;
  step.flops = step.work_flops = 1'000'000'000;
  step.bytes_read = step.bytes_written = 5'000'000;
  step.working_set_bytes = 10'000'000;
  step.unit = "fp32";
  side.steps = {step};
  side.roofs.compute = {{"fp32", "avx512", 100e9}};
  side.roofs.memory = {{"memory", "read", 10e9, 0}};
  side.clock_mhz = 2000.0;
  side.ceiling_clock_mhz = 2500.0;
  return side;
}

TEST(GapLedger, OfTurnsHeldAgainstEachOtherTheUnevenMachineIsAFactor) {
  GapSide a, b;
  a.seconds = 1.0;
  b.seconds = 1.2;
  GapLedger ledger = gap_ledger(a, b);
  add_turns(1.05, ledger);
  EXPECT_DOUBLE_EQ(ledger.ratio, 1.05);
  EXPECT_EQ(ledger.factors.back().name, "uneven machine");
  double product = 1.0;
  for (const GapFactor& factor : ledger.factors) product *= factor.factor;
  EXPECT_NEAR(product, 1.05, 1e-12);
}

TEST(Gap, EachFactorIsWhatItsDefinitionSays) {
  const GapSide a = known_side();
  GapSide b = known_side();
  b.seconds = 0.060;
  b.data_wait_seconds = 0.010;
  b.steps[0].seconds = 0.040;
  b.steps[0].flops = 2'000'000'000;
  b.roofs.compute[0].flops_per_second = 80e9;
  b.clock_mhz = 1500.0;
  const GapLedger ledger = gap_ledger(a, b);
  EXPECT_DOUBLE_EQ(ledger.ratio, 2.0);
  EXPECT_NEAR(factor_of(ledger, "data wait"), (60.0 / 50.0) / (30.0 / 28.0), 1e-12);
  EXPECT_NEAR(factor_of(ledger, "launch gaps and idle"), (50.0 / 40.0) / (28.0 / 25.0), 1e-12);
  EXPECT_NEAR(factor_of(ledger, "FLOPs and bytes done"), 2.0, 1e-12);
  EXPECT_NEAR(factor_of(ledger, "hardware ceiling"), 100.0 / 80.0, 1e-12);
  EXPECT_NEAR(factor_of(ledger, "clock"), 2000.0 / 1500.0, 1e-12);
  // Steps take 2.5 times their least time in A (10 ms), 1.6 times in B (25 ms), clocks taken off.
  EXPECT_NEAR(factor_of(ledger, "efficiency"), (1.6 / (2500.0 / 1500.0)) / (2.5 / 1.25), 1e-12);
  EXPECT_NEAR(product(ledger), 2.0, 1e-12);
}

TEST(Gap, HiddenWaitingCostsNothing) {
  // The device computes for 25 of 30 ms; of 12 ms of waiting 5 can have cost time.
  GapSide a = known_side(), b = known_side();
  b.data_wait_seconds = 0.012;
  const GapLedger ledger = gap_ledger(a, b);
  EXPECT_NEAR(factor_of(ledger, "data wait"), (30.0 / 25.0) / (30.0 / 28.0), 1e-12);
  EXPECT_NEAR(product(ledger), 1.0, 1e-12);
}

TEST(Gap, UnknownPartsJoinTheirNeighbours) {
  GapSide a = known_side(), b = known_side();
  b.seconds = 0.045;
  b.data_wait_seconds.reset();
  b.clock_mhz.reset();
  GapLedger ledger = gap_ledger(a, b);
  EXPECT_NEAR(factor_of(ledger, "data wait and launch gaps and idle"), 1.5, 1e-12);
  EXPECT_NEAR(factor_of(ledger, "efficiency and clock"), 1.0, 1e-12);
  EXPECT_NEAR(product(ledger), 1.5, 1e-12);

  b.roofs = {};
  b.steps[0].flops = 3'000'000'000;
  ledger = gap_ledger(a, b);
  EXPECT_NEAR(factor_of(ledger, "FLOPs done"), 3.0, 1e-12);
  EXPECT_NEAR(factor_of(ledger, "bytes done, hardware ceiling, clock and efficiency"), 1.0 / 3.0,
              1e-12);
  EXPECT_NEAR(product(ledger), 1.5, 1e-12);

  b.steps.clear();
  ledger = gap_ledger(a, b);
  ASSERT_EQ(ledger.factors.size(), 1U);
  EXPECT_EQ(ledger.factors[0].name,
            "data wait, launch gaps and idle, FLOPs and bytes done, hardware ceiling, clock and "
            "efficiency");
  EXPECT_NEAR(ledger.factors[0].factor, 1.5, 1e-12);
}

TEST(Gap, AUnitWithoutRoofOnTheOtherDeviceLeavesOneWay) {
  GapSide a = known_side(), b = known_side();
  b.steps[0].unit = "tensor bf16";
  b.steps[0].seconds = 0.002;
  b.seconds = 0.003;
  b.data_wait_seconds = 0.0;
  b.roofs.compute = {{"tensor bf16", "tensor", 1000e9}, {"fp32", "cuda core", 200e9}};
  b.roofs.memory = {{"memory", "read", 100e9, 0}};
  const GapLedger ledger = gap_ledger(a, b);
  EXPECT_NEAR(factor_of(ledger, "hardware ceiling"), 0.5, 1e-12);  // A's plan: 10 ms, then 5 ms
  EXPECT_NEAR(factor_of(ledger, "FLOPs and bytes done"), 0.2, 1e-12);
  EXPECT_NEAR(product(ledger), 0.1, 1e-12);
}

TEST(Gap, DifferentBatchesAreHeldAgainstEachOtherBySample) {
  GapSide a = known_side(), b = known_side();
  b.seconds *= 2.0;
  *b.data_wait_seconds *= 2.0;
  b.steps[0].seconds *= 2.0;
  b.steps[0].flops *= 2;
  b.steps[0].bytes_read *= 2;
  b.steps[0].bytes_written *= 2;
  a.scale = 1.0 / 64.0;
  b.scale = 1.0 / 128.0;
  for (const GapFactor& factor : gap_ledger(a, b).factors) {
    EXPECT_NEAR(factor.factor, 1.0, 1e-12) << factor.name;
  }
}

}  // namespace
}  // namespace ridgeline
