// The measuring core on steps and a clock made up for the purpose: who runs when, when it ends, and
// that nothing measured is lost.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "base/processor_time.h"
#include "measure/iterations/blocks.h"
#include "measure/iterations/events.h"
#include "measure/iterations/grouping.h"
#include "measure/iterations/measurement.h"
#include "measure/iterations/quiet.h"
#include "measure/iterations/result.h"
#include "measure/iterations/sinks.h"

namespace ridgeline {
namespace {

// Seconds that pass only when a step runs.
struct FakeClock {
  double now = 0.0;
};

// The seconds of each iteration come from a function of its number.
class FakeStep final : public MeasuredStep {
 public:
  FakeStep(FakeClock& clock, std::string backend, std::function<double(std::int64_t)> seconds)
      : clock_(clock), seconds_(std::move(seconds)) {
    subject_.work.model = "fake";
    subject_.work.batch = 10;
    subject_.executor.backend = std::move(backend);
    subject_.executor.device = "cpu";
    subject_.needed_bytes = 100;
  }

  [[nodiscard]] const Subject& subject() const override { return subject_; }
  Preparation prepare() override {
    if (fail_at == -1) fail("no memory left");
    clock_.now += 1.0;
    return {1.0, 0.25};
  }
  void run(std::int64_t count, const std::function<bool(const Iteration&)>& see) override {
    for (std::int64_t i = 0; i < count; ++i) {
      if (fail_at == done) fail("the device is gone");
      Iteration iteration;
      iteration.wall_seconds = seconds_(done++);
      clock_.now += iteration.wall_seconds;
      if (!see(iteration)) return;
    }
  }
  [[nodiscard]] std::optional<Iteration> run_queued(std::int64_t count) override {
    if (!queues) return std::nullopt;
    clock_.now += static_cast<double>(count) * 0.001;
    Iteration iteration;
    iteration.wall_seconds = 0.001;
    iteration.device_seconds = 0.0005;
    return iteration;
  }
  [[nodiscard]] std::optional<SplitIteration> run_split() override {
    if (!splits) return std::nullopt;
    return SplitIteration{0.006, 0.001, 0.002, 0.003};
  }
  [[nodiscard]] StepDetails details(bool timed) override {
    StepDetails details;
    details.kernels = {"fake:kernel"};
    details.numbers["training_flops"] = 1000.0;
    if (timed) details.steps.emplace_back().seconds = 0.001;
    return details;
  }
  [[nodiscard]] bool works_ahead() const override { return ahead; }
  [[nodiscard]] std::optional<double> processor_seconds() const override { return used; }
  void close() override { ++closed; }

  std::int64_t done = 0, fail_at = -2;
  bool queues = false, splits = false;
  bool ahead = false;
  std::optional<double> used;  // in a process of its own
  int closed = 0;

  Subject subject_;

 private:
  FakeClock& clock_;
  std::function<double(std::int64_t)> seconds_;
};

std::function<double(std::int64_t)> constant(double seconds) {
  return [=](std::int64_t) { return seconds; };
}

// Steps, clock and all that is seen of a measuring.
class Measuring : public ::testing::Test {
 protected:
  FakeStep& add(const std::string& backend, std::function<double(std::int64_t)> seconds) {
    auto step = std::make_unique<FakeStep>(clock_, backend, std::move(seconds));
    FakeStep& reference = *step;
    steps_.push_back(std::move(step));
    return reference;
  }

  // Stops after so many iterations; 0: never.
  std::vector<Measured> run(const MeasureOptions& options, std::int64_t stop_after = 0) {
    std::vector<std::size_t> all;
    std::vector<Subject> subjects;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      all.push_back(i);
      subjects.push_back(steps_[i]->subject());
    }
    ResultCollector collector(subjects);
    std::int64_t asked = 0;
    const MeasureControl control{.now = [&] { return clock_.now; },
                                 .go_on =
                                     [&](const MeasureProgress& progress) {
                                       progress_.push_back(progress);
                                       return stop_after == 0 || ++asked < stop_after;
                                     },
                                 .settle = settle_};
    complete_ = measure(steps_, {all}, options, control, collector);
    return collector.results();
  }

  static MeasureOptions fixed(std::int64_t warmup, std::int64_t iterations) {
    MeasureOptions options;
    options.warmup.iterations = warmup;
    options.stopping.iterations = iterations;
    return options;
  }

  FakeClock clock_;
  StepList steps_;
  std::function<void(const std::function<double()>&)> settle_;
  bool complete_ = false;
  std::vector<MeasureProgress> progress_;  // as it was told
};

std::int64_t count_of(const Measured& measured, SampleKind kind) {
  return std::count_if(measured.samples.begin(), measured.samples.end(),
                       [&](const Sample& sample) { return sample.kind == kind; });
}

TEST(Blocks, OrderIsAFunctionOfTheSeed) {
  const BlockOrder one(5, 7), same(5, 7), other(5, 8);
  std::vector<std::vector<std::size_t>> orders, others;
  for (std::int64_t block = 0; block < 20; ++block) {
    EXPECT_EQ(one.order(block), same.order(block));
    orders.push_back(one.order(block));
    others.push_back(other.order(block));
  }
  EXPECT_NE(orders, others);
  EXPECT_GT(std::set(orders.begin(), orders.end()).size(), 5U) << "the order hardly changes";
}

TEST(Blocks, EveryCandidateHasEveryPlaceEquallyOften) {
  for (const std::size_t candidates : {1U, 2U, 3U, 7U}) {
    const BlockOrder orders(candidates, 3);
    std::map<std::pair<std::size_t, std::size_t>, int> places;
    const auto blocks = static_cast<std::int64_t>(4 * candidates);
    for (std::int64_t block = 0; block < blocks; ++block) {
      const std::vector<std::size_t> order = orders.order(block);
      EXPECT_EQ(std::set(order.begin(), order.end()).size(), candidates);
      for (std::size_t place = 0; place < candidates; ++place) ++places[{place, order[place]}];
    }
    for (const auto& [place, times] : places) EXPECT_EQ(times, 4);
    EXPECT_EQ(places.size(), candidates * candidates);
  }
}

TEST(Blocks, TurnsAreNeitherSingleNorEndless) {
  EXPECT_EQ(turn_length(10.0, 0.2), 2);
  EXPECT_EQ(turn_length(0.01, 0.2), 20);
  EXPECT_EQ(turn_length(0.002, 0.02), 10);
  EXPECT_EQ(turn_length(1e-6, 0.2), 100);
  EXPECT_EQ(turn_length(0.0, 0.2), 100);
}

// The total is known from the start and stays; what is done never goes back or beyond it.
void expect_steady(const std::vector<MeasureProgress>& progress, std::int64_t total) {
  ASSERT_FALSE(progress.empty());
  std::int64_t done = 0;
  for (const MeasureProgress& now : progress) {
    EXPECT_EQ(now.total, total);
    EXPECT_GE(now.done, done);
    EXPECT_LE(now.done, total);
    done = now.done;
  }
  EXPECT_GT(done, 0);
}

TEST_F(Measuring, TheTotalOfTheProgressStays) {
  add("a", constant(0.01));
  add("b", constant(0.03));
  run(fixed(2, 40));
  expect_steady(progress_, 80);
  EXPECT_STREQ(progress_[0].unit, "iteration");
}

TEST_F(Measuring, TheTotalOfTheProgressStaysWhereTheNumberOfIterationsIsOpen) {
  const auto uneven = [](std::int64_t i) { return 0.01 * static_cast<double>(1 + i * 7919 % 13); };
  add("a", uneven);
  add("b", uneven);
  MeasureOptions options;
  options.stopping.max_seconds = 5.0;
  options.stopping.relative_width = 1e-9;  // time is up before
  run(options);
  expect_steady(progress_, 10);
  EXPECT_STREQ(progress_[0].unit, "second");
}

TEST_F(Measuring, EveryTurnBeginsWhenTheOthersHaveSettled) {
  FakeStep& first = add("first", constant(0.01));
  add("second", constant(0.01)).used = 7.0;
  std::vector<std::int64_t> before;  // iterations of the first, at each call
  double told = 0.0;
  settle_ = [&](const std::function<double()>& used) {
    before.push_back(first.done);
    told = used();
    clock_.now += 0.25;  // belongs to neither
  };
  const std::vector<Measured> results = run(fixed(2, 20));
  // Two warm-ups, two turns of each, two endings.
  EXPECT_EQ(before.size(), 8U);
  EXPECT_EQ(before.front(), 0);
  EXPECT_GE(told, 7.0) << "the other process counts";
  for (const Measured& result : results) {
    for (const Sample& sample : result.samples) EXPECT_DOUBLE_EQ(sample.wall_seconds, 0.01);
  }
}

TEST_F(Measuring, OneAloneDoesNotWait) {
  add("only", constant(0.01));
  int calls = 0;
  settle_ = [&](const std::function<double()>&) { ++calls; };
  (void)run(fixed(1, 10));
  EXPECT_EQ(calls, 0);
}

TEST(Quiet, WaitsForThreadsThatSpin) {
  double now = 0.0;
  const auto wait = [&](double spinning_until, double threads) {
    now = 0.0;
    return wait_until_quiet({.now = [&] { return now; },
                             .sleep = [&](double seconds) { now += seconds; },
                             .used = [&] { return threads * std::min(now, spinning_until); }});
  };
  EXPECT_TRUE(wait(0.0, 16.0));
  EXPECT_NEAR(now, kQuietWindow, 1e-9);
  EXPECT_TRUE(wait(0.1, 16.0));
  EXPECT_NEAR(now, 0.1, 2.0 * kQuietWindow);
  EXPECT_FALSE(wait(1e9, 1.0)) << "one thread that never ends";
  EXPECT_NEAR(now, kLongestWait, 2.0 * kQuietWindow);
  EXPECT_TRUE(wait(1e9, 0.1)) << "a thread that reads sensors now and then";
}

TEST(Quiet, ProcessorTimeOfProcessesIsTold) {
  const double before = processor_seconds(), seen = processor_seconds_of(getpid());
  const double thread = thread_processor_seconds();
  while (thread_processor_seconds() - thread < 0.01) {
  }
  EXPECT_GE(processor_seconds() - before, 0.009);
  EXPECT_GE(processor_seconds_of(getpid()) - seen, 0.009);
  const pid_t gone = fork();
  if (gone == 0) _exit(0);
  ASSERT_EQ(waitpid(gone, nullptr, 0), gone);
  EXPECT_EQ(processor_seconds_of(gone), 0.0);
}

TEST_F(Measuring, FixedCountsAreKeptExactly) {
  FakeStep& step = add("a", constant(0.01));
  const std::vector<Measured> results = run(fixed(3, 25));
  ASSERT_TRUE(complete_);
  EXPECT_EQ(count_of(results[0], SampleKind::warmup), 3);
  EXPECT_EQ(count_of(results[0], SampleKind::measured), 25);
  EXPECT_EQ(step.done, 28);
  EXPECT_EQ(step.closed, 1);
  EXPECT_EQ(results[0].ending.reason, StopReason::counted);
  EXPECT_EQ(results[0].ending.status, RunStatus::complete);
  // Turns of ten: three blocks.
  EXPECT_EQ(results[0].samples.back().block, 3);
  for (std::size_t i = 0; i < results[0].samples.size(); ++i) {
    EXPECT_EQ(results[0].samples[i].iteration, static_cast<std::int64_t>(i));
  }
}

TEST_F(Measuring, CandidatesTakeTurnsAndWarmUpAgainInEach) {
  add("a", constant(0.001));
  add("b", constant(0.002));
  add("c", constant(0.003));
  const std::vector<Measured> results = run(fixed(2, 20));
  for (const Measured& result : results) {
    EXPECT_EQ(count_of(result, SampleKind::measured), 20);
    EXPECT_EQ(count_of(result, SampleKind::warmup), 2 + 2) << "one more at the head of each turn";
    for (std::int64_t block = 1; block <= 2; ++block) {
      const auto first = std::find_if(result.samples.begin(), result.samples.end(),
                                      [&](const Sample& sample) { return sample.block == block; });
      EXPECT_EQ(first->kind, SampleKind::warmup);
    }
  }
  // Turns of one candidate do not follow each other: others ran in between.
  const auto block_start = [&](const Measured& result, std::int64_t block) {
    return std::find_if(result.samples.begin(), result.samples.end(),
                        [&](const Sample& sample) { return sample.block == block; })
        ->at_seconds;
  };
  for (const Measured& one : results) {
    for (const Measured& other : results) {
      EXPECT_LT(block_start(one, 1), block_start(other, 2));
    }
  }
}

TEST_F(Measuring, FixedCountsOfSlowStepsGoInShorterTurnsThatAllShare) {
  add("a", constant(0.01));
  add("b", constant(0.03));
  for (const Measured& result : run(fixed(2, 20))) {
    EXPECT_EQ(count_of(result, SampleKind::measured), 20);
    EXPECT_EQ(summarise(result).blocks, 7) << "three of 30 ms, of the faster one as well";
  }
}

TEST_F(Measuring, TurnsSideBySideAreShort) {
  add("a", constant(0.002));
  add("b", constant(0.002));
  MeasureOptions options;
  const std::vector<Measured> shared = run(options);
  const auto longest_turn = [](const Measured& result) {
    std::map<std::int64_t, std::int64_t> turns;
    for (const Sample& sample : result.samples) {
      if (sample.kind == SampleKind::measured) ++turns[sample.block];
    }
    std::int64_t longest = 0;
    for (const auto& [block, count] : turns) longest = std::max(longest, count);
    return longest;
  };
  EXPECT_EQ(longest_turn(shared[0]), 10) << "20 ms";
  steps_.clear();
  add("alone", constant(0.002));
  EXPECT_EQ(longest_turn(run(options)[0]), 100) << "200 ms";
  steps_.clear();
  add("a", constant(0.002)).ahead = true;
  add("b", constant(0.002)).ahead = true;
  EXPECT_EQ(longest_turn(run(options)[0]), 100) << "or loaders would fill up between turns";
}

TEST_F(Measuring, VeryLongIterationsNeedNoColdOneInEachTurn) {
  add("a", constant(1.0));
  add("b", constant(1.0));
  for (const Measured& result : run(fixed(3, 8))) {
    EXPECT_EQ(count_of(result, SampleKind::warmup), 3);
    EXPECT_EQ(summarise(result).blocks, 4);
  }
}

TEST_F(Measuring, SensorsGetTimeOfTheirOwnAfterShortTurns) {
  add("a", constant(0.002));
  add("b", constant(0.002));
  MeasureOptions options = fixed(2, 40);
  options.watch_seconds = 0.05;
  for (const Measured& result : run(options)) {
    EXPECT_NEAR(static_cast<double>(count_of(result, SampleKind::watched)), 25.0, 1.0);
    EXPECT_EQ(summarise(result).wall.count, 40) << "they are no measured samples";
  }
  steps_.clear();
  add("alone", constant(0.002));
  EXPECT_EQ(count_of(run(options)[0], SampleKind::watched), 0) << "all of the time was its own";
}

TEST_F(Measuring, SteadyTimesAreMeasuredUntilTheIntervalIsNarrow) {
  add("a", [](std::int64_t i) { return 0.010 + 0.00001 * static_cast<double>(i % 3); });
  MeasureOptions options;
  options.stopping.min_samples = 10;
  const std::vector<Measured> results = run(options);
  EXPECT_EQ(results[0].ending.reason, StopReason::precise);
  EXPECT_GE(count_of(results[0], SampleKind::measured), 10);
  EXPECT_GE(summarise(results[0]).blocks, options.stopping.min_blocks);
}

TEST_F(Measuring, TimeEndsWhatNeverGetsPrecise) {
  // Every second turn is twice as slow: the interval stays wide however long it goes on.
  add("a", [](std::int64_t i) { return i / 20 % 2 == 0 ? 0.01 : 0.02; });
  MeasureOptions options;
  options.stopping.max_seconds = 5.0;
  options.stopping.relative_width = 0.001;
  const std::vector<Measured> results = run(options);
  EXPECT_EQ(results[0].ending.reason, StopReason::time_is_up);
  EXPECT_GE(clock_.now, 5.0);
  EXPECT_LT(clock_.now, 20.0);
}

TEST_F(Measuring, SlowIterationsStillGiveTheMinimumOfSamples) {
  add("a", [](std::int64_t i) { return 100.0 + static_cast<double>(i % 7) * 20.0; });
  MeasureOptions options;
  options.stopping.max_seconds = 1.0;
  options.stopping.min_samples = 10;
  options.stopping.min_blocks = 5;
  const std::vector<Measured> results = run(options);
  EXPECT_GE(count_of(results[0], SampleKind::measured), 10);
  EXPECT_EQ(results[0].ending.reason, StopReason::time_is_up);
}

TEST_F(Measuring, WarmUpEndsWhenIterationsAreSteadyOrPatienceEnds) {
  // Slow at first: compilation, caches, clocks.
  add("settles", [](std::int64_t i) {
    const std::vector<double> first = {1.0, 0.3, 0.1, 0.05};
    return i < 4 ? first[static_cast<std::size_t>(i)] : 0.02;
  });
  MeasureOptions options;
  options.stopping.iterations = 10;
  const std::vector<Measured> settled = run(options);
  const std::int64_t warmup = count_of(settled[0], SampleKind::warmup);
  EXPECT_GE(warmup, 7);
  EXPECT_LT(warmup, 60);
  const MeasuredSummary summary = summarise(settled[0]);
  EXPECT_DOUBLE_EQ(summary.interval.median, 0.02);
  EXPECT_DOUBLE_EQ(summary.first_seconds, 1.0);

  steps_.clear();
  // Twice as slow in every window: never steady.
  add("grows", [](std::int64_t i) { return 1e-6 * std::pow(1.2, static_cast<double>(i)); });
  options.warmup.max_samples = 40;
  const std::vector<Measured> growing = run(options);
  EXPECT_EQ(count_of(growing[0], SampleKind::warmup), 40);
  EXPECT_EQ(growing[0].ending.warmup, "not steady after 40 iterations");
}

TEST_F(Measuring, InterruptionLeavesNoCandidateWithoutASample) {
  add("a", constant(0.01));
  add("b", constant(0.01));
  const std::vector<Measured> results = run(fixed(5, 1000), 3);  // in the warm-up of the first
  EXPECT_FALSE(complete_);
  for (const Measured& result : results) {
    EXPECT_EQ(count_of(result, SampleKind::measured), 1);
    EXPECT_EQ(result.ending.status, RunStatus::interrupted);
    EXPECT_TRUE(result.ending.details.steps.empty()) << "timing the steps takes too long now";
    EXPECT_FALSE(result.ending.details.kernels.empty());
  }
}

TEST_F(Measuring, InterruptionKeepsWhatWasMeasured) {
  FakeStep& step = add("a", constant(0.01));
  const std::vector<Measured> results = run(fixed(0, 1000), 57);
  EXPECT_EQ(count_of(results[0], SampleKind::measured), 57);
  EXPECT_EQ(results[0].ending.reason, StopReason::interrupted);
  EXPECT_EQ(step.closed, 1);
}

TEST_F(Measuring, AFailureEndsOneCandidateAlone) {
  FakeStep& broken = add("broken", constant(0.01));
  broken.fail_at = 17;
  FakeStep& refused = add("refused", constant(0.01));
  refused.fail_at = -1;
  add("sound", constant(0.01));
  const std::vector<Measured> results = run(fixed(2, 30));
  EXPECT_TRUE(complete_);
  EXPECT_EQ(results[0].ending.status, RunStatus::failed);
  EXPECT_EQ(results[0].ending.error, "the device is gone");
  EXPECT_GE(count_of(results[0], SampleKind::measured), 10) << "finished turns stay";
  EXPECT_EQ(results[1].ending.status, RunStatus::failed);
  EXPECT_TRUE(results[1].samples.empty());
  EXPECT_EQ(count_of(results[2], SampleKind::measured), 30);
  EXPECT_EQ(broken.closed, 1);
  EXPECT_EQ(refused.closed, 1);
}

TEST_F(Measuring, CandidatesOfTheSameWorkStopTogether) {
  add("steady", constant(0.01));
  FakeStep& noisy = add("noisy", [](std::int64_t i) { return i / 30 % 2 == 0 ? 0.01 : 0.02; });
  FakeStep& other = add("steady", constant(0.01));
  other.subject_.work.batch = 99;
  MeasureOptions options;
  options.stopping.max_seconds = 8.0;
  const std::vector<Measured> results = run(options);
  const auto blocks = [&](std::size_t i) { return summarise(results[i]).blocks; };
  EXPECT_EQ(blocks(0), blocks(1)) << "or a change of the machine would meet only one of them";
  EXPECT_LT(blocks(2), blocks(0));
  EXPECT_EQ(results[0].ending.reason, StopReason::precise);
  EXPECT_EQ(results[1].ending.reason, StopReason::time_is_up);
  EXPECT_GT(noisy.done, other.done);
}

TEST_F(Measuring, ASlowCandidateIsNotMeasuredLongerThanItsTime) {
  add("slow", constant(0.4));
  add("fast", [](std::int64_t i) { return i / 30 % 2 == 0 ? 0.001 : 0.002; });
  MeasureOptions options;
  options.stopping.max_seconds = 6.0;
  const std::vector<Measured> results = run(options);
  const MeasuredSummary slow = summarise(results[0]), fast = summarise(results[1]);
  EXPECT_GE(slow.wall.count, 10);
  EXPECT_GE(slow.blocks, 6);
  EXPECT_LE(static_cast<double>(slow.wall.count) * 0.4, 2 * options.stopping.max_seconds);
  EXPECT_GT(fast.blocks, 3 * slow.blocks);
}

TEST_F(Measuring, QueuedAndSplitIterationsAreSamplesOfTheirOwn) {
  FakeStep& step = add("a", constant(0.01));
  step.queues = step.splits = true;
  const std::vector<Measured> results = run(fixed(1, 20));
  EXPECT_EQ(count_of(results[0], SampleKind::queued), 2) << "one for each turn";
  EXPECT_GE(count_of(results[0], SampleKind::split), 1);
  const MeasuredSummary summary = summarise(results[0]);
  EXPECT_DOUBLE_EQ(summary.interval.median, 0.01);
  EXPECT_DOUBLE_EQ(summary.queued->median, 0.0005);
  EXPECT_DOUBLE_EQ(summary.samples_per_second, 10 / 0.0005)
      << "where the host does not wait for each";
  EXPECT_DOUBLE_EQ(*summary.forward_seconds, 0.001);
  EXPECT_DOUBLE_EQ(*summary.backward_seconds, 0.002);
  EXPECT_DOUBLE_EQ(*summary.optimizer_seconds, 0.003);
}

TEST_F(Measuring, PeriodicSamplesAreNamed) {
  add("a", [](std::int64_t i) { return i % 10 == 0 ? 0.004 : 0.010; });
  const std::vector<Measured> results = run(fixed(0, 100));
  const MeasuredSummary summary = summarise(results[0]);
  const bool named =
      std::any_of(summary.findings.begin(), summary.findings.end(),
                  [](const Finding& finding) { return finding.name == "periodic samples"; });
  EXPECT_TRUE(named);
  EXPECT_EQ(summary.wall.count, 100) << "nothing is dropped";
}

TEST_F(Measuring, PlansThatCannotBeFollowedAreRefused) {
  add("a", constant(0.01));
  EXPECT_THROW(run(fixed(0, 0)), Error);
  EXPECT_THROW(run(fixed(-1, 5)), Error);
  MeasureOptions endless;
  endless.stopping.max_seconds = 0.0;
  EXPECT_THROW(run(endless), Error);
}

TEST_F(Measuring, EventsTellAnotherProcessEverything) {
  FakeStep& step = add("a", constant(0.01));
  step.queues = step.splits = true;
  FakeStep& broken = add("broken", constant(0.01));
  broken.fail_at = 3;
  std::vector<Subject> subjects = {steps_[0]->subject(), steps_[1]->subject()};
  ResultCollector direct(subjects), replayed(subjects);
  EventWriter writer(
      [&](const std::string& line) { replay_event(line, subjects.size(), 5.0, replayed); });
  SinkChain both;
  both.add(direct);
  both.add(writer);
  const MeasureControl control{.now = [&] { return clock_.now; },
                               .go_on = [](const MeasureProgress&) { return true; }};
  EXPECT_TRUE(measure(steps_, {{0, 1}}, fixed(2, 15), control, both));
  for (std::size_t i = 0; i < 2; ++i) {
    const Measured& one = direct.results()[i];
    const Measured& other = replayed.results()[i];
    ASSERT_EQ(one.samples.size(), other.samples.size());
    for (std::size_t s = 0; s < one.samples.size(); ++s) {
      EXPECT_DOUBLE_EQ(one.samples[s].at_seconds + 5.0, other.samples[s].at_seconds);
      EXPECT_EQ(one.samples[s].wall_seconds, other.samples[s].wall_seconds);
      EXPECT_EQ(one.samples[s].kind, other.samples[s].kind);
      EXPECT_EQ(one.samples[s].block, other.samples[s].block);
      EXPECT_EQ(one.samples[s].device_seconds, other.samples[s].device_seconds);
      EXPECT_EQ(one.samples[s].optimizer_seconds, other.samples[s].optimizer_seconds);
    }
    EXPECT_EQ(one.ending.status, other.ending.status);
    EXPECT_EQ(one.ending.error, other.ending.error);
    EXPECT_EQ(one.ending.reason, other.ending.reason);
    EXPECT_EQ(one.ending.details.numbers, other.ending.details.numbers);
    EXPECT_EQ(one.ending.details.kernels, other.ending.details.kernels);
    EXPECT_EQ(one.ending.details.steps.size(), other.ending.details.steps.size());
    EXPECT_EQ(one.preparation.autotune_seconds, other.preparation.autotune_seconds);
  }
  ResultCollector collector(subjects);
  EXPECT_THROW(replay_event("{\"event\":\"begun\",\"candidate\":2}", 2, 0.0, collector), Error);
  EXPECT_THROW(replay_event("Segmentation fault", 2, 0.0, collector), Error);
}

TEST(MemoryGroups, TogetherAsFarAsMemoryGoes) {
  const auto subject = [](std::int64_t batch, const char* backend, std::int64_t bytes) {
    Subject each;
    each.work.batch = batch;
    each.executor.backend = backend;
    each.executor.device = "cpu";
    each.needed_bytes = bytes;
    return each;
  };
  const std::vector<Subject> subjects = {subject(1, "a", 30), subject(1, "b", 30),
                                         subject(2, "a", 30), subject(2, "b", 30),
                                         subject(4, "a", 60), subject(4, "b", 60)};
  const auto groups_with = [&](std::int64_t memory) {
    return group_by_memory(subjects, [=](const std::string&) { return memory; });
  };
  const MemoryGroups roomy = groups_with(1000);
  EXPECT_EQ(roomy.groups.size(), 1U);
  EXPECT_EQ(roomy.note, "");
  // 90 usable bytes: sets of the same work stay whole where they can.
  const MemoryGroups tight = groups_with(100);
  EXPECT_EQ(tight.groups, (std::vector<std::vector<std::size_t>>{{0, 1}, {2, 3}, {4}, {5}}));
  EXPECT_NE(tight.note.find("4 groups"), std::string::npos) << tight.note;
  EXPECT_NE(tight.note.find("not side by side"), std::string::npos) << tight.note;
}

}  // namespace
}  // namespace ridgeline
