// Profiles: time shared out without rest, threads watched, tables that add up, what is kept when a
// run fails.

#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/parallel.h"
#include "data/synthetic.h"
#include "measure/iterations/engine_step.h"
#include "measure/profile/breakdown.h"
#include "measure/profile/collect.h"
#include "measure/profile/counters.h"
#include "measure/profile/gains.h"
#include "measure/profile/tables.h"
#include "measure/profile/thread_activity.h"

namespace ridgeline {
namespace {

ProfileEvent event(Activity activity, double begin, double end, std::int64_t step = -1,
                   const char* name = "", std::int64_t iteration = 0) {
  ProfileEvent made;
  made.activity = activity;
  made.name = name;
  made.begin = begin;
  made.end = end;
  made.step = step;
  made.iteration = iteration;
  return made;
}

// Threads as tests ask for them, and the usual ones afterwards.
class Threads {
 public:
  explicit Threads(int count) { set_thread_count(count); }
  ~Threads() { set_thread_count(0); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
};

TEST(Breakdown, MiddleIterationsAreThoseAroundTheMedian) {
  EXPECT_EQ(middle_of(std::vector{7.0}), (std::vector<std::size_t>{0}));
  EXPECT_EQ(middle_of(std::vector{9.0, 1.0, 5.0}), (std::vector<std::size_t>{2}));
  EXPECT_EQ(middle_of(std::vector{5.0, 1.0, 4.0, 2.0, 3.0}), (std::vector<std::size_t>{3, 4, 2}));
  EXPECT_DOUBLE_EQ(middle_mean(std::vector{5.0, 1.0, 4.0, 2.0, 300.0}), 11.0 / 3.0);
}

TEST(Breakdown, EachMomentBelongsToOnePartByPrecedence) {
  const std::vector<ProfileEvent> events = {
      event(Activity::iteration, 0.0, 10.0),
      event(Activity::runtime, 0.0, 2.0, 0, "cudaGraphLaunch"),
      event(Activity::kernel, 1.0, 4.0, 0),
      event(Activity::copy, 3.0, 5.0),       // 1 s of it under the kernel
      event(Activity::data_wait, 4.0, 6.0),  // 1 s of it under the copy
      event(Activity::kernel, 5.5, 6.5, 1),  // half of it over the wait
      event(Activity::runtime, 6.0, 9.0, -1, "cudaStreamSynchronize"),
  };
  const SharedTime shared = share_time(events, 2, false);
  EXPECT_DOUBLE_EQ(shared.breakdown.runtime, 1.0);
  EXPECT_DOUBLE_EQ(shared.breakdown.kernel, 4.0);
  EXPECT_DOUBLE_EQ(shared.breakdown.copy, 1.0);
  EXPECT_DOUBLE_EQ(shared.breakdown.data, 0.5);
  EXPECT_DOUBLE_EQ(shared.breakdown.idle, 2.5);  // the host waits, the device has nothing to do
  EXPECT_DOUBLE_EQ(shared.breakdown.cpu, 1.0);   // after the wait
  EXPECT_DOUBLE_EQ(shared.breakdown.total(), 10.0);
  EXPECT_DOUBLE_EQ(shared.steps[0], 3.0);
  EXPECT_DOUBLE_EQ(shared.steps[1], 1.0);
  EXPECT_DOUBLE_EQ(shared.outside.kernel, 0.0);
  EXPECT_DOUBLE_EQ(shared.outside.total(), 6.0);
  EXPECT_DOUBLE_EQ(shared.wall, 10.0);
}

TEST(Breakdown, OnTheCpuStepsAreTheKernels) {
  const std::vector<ProfileEvent> events = {
      event(Activity::iteration, 1.0, 5.0), event(Activity::step, 1.5, 2.5, 0),
      event(Activity::body, 1.6, 2.4, 0),   event(Activity::step, 2.5, 3.0, 1),
      event(Activity::data_wait, 3.0, 4.0), event(Activity::upload, 4.0, 4.25),
  };
  const SharedTime shared = share_time(events, 2, true);
  EXPECT_DOUBLE_EQ(shared.breakdown.kernel, 1.5);
  EXPECT_DOUBLE_EQ(shared.breakdown.data, 1.0);
  EXPECT_DOUBLE_EQ(shared.breakdown.copy, 0.25);
  EXPECT_DOUBLE_EQ(shared.breakdown.cpu, 1.25);
  EXPECT_DOUBLE_EQ(shared.breakdown.total(), shared.wall);
  EXPECT_DOUBLE_EQ(shared.steps[0] + shared.steps[1] + shared.outside.total(), shared.wall);
}

TEST(Breakdown, StepsThatOverlapShareTheirTimeAndWhatLiesOutsideIsCutOff) {
  const std::vector<ProfileEvent> events = {
      event(Activity::iteration, 0.0, 4.0),
      event(Activity::kernel, -1.0, 2.0, 0),
      event(Activity::kernel, 1.0, 6.0, 1),
  };
  const SharedTime shared = share_time(events, 2, false);
  EXPECT_DOUBLE_EQ(shared.steps[0], 2.0);
  EXPECT_DOUBLE_EQ(shared.steps[1], 2.0);
  EXPECT_DOUBLE_EQ(shared.breakdown.total(), 4.0);
}

TEST(Breakdown, TimesOfStepsAloneLeaveTheRestIdleAndNeverExceedTheIteration) {
  const SharedTime some = share_time(std::vector{4.0}, std::vector{1.0, 2.0});
  EXPECT_DOUBLE_EQ(some.breakdown.kernel, 3.0);
  EXPECT_DOUBLE_EQ(some.breakdown.idle, 1.0);
  const SharedTime slower = share_time(std::vector{2.0}, std::vector{1.0, 3.0});
  EXPECT_DOUBLE_EQ(slower.steps[0], 0.5);
  EXPECT_DOUBLE_EQ(slower.steps[1], 1.5);
  EXPECT_DOUBLE_EQ(slower.breakdown.total(), 2.0);
}

TEST(ThreadsProfile, EveryThreadTellsOfItsPartInEveryRegion) {
  const Threads two(2);
  ThreadActivity activity(2);
  for (std::int64_t step = 0; step < 3; ++step) {
    activity.set_step(step);
    parallel([](int, int) {});
  }
  std::set<std::pair<std::int64_t, int>> seen;
  for (const auto& body : activity.take()) {
    EXPECT_LE(body.begin, body.end);
    EXPECT_TRUE(seen.emplace(body.step, body.thread).second);
  }
  EXPECT_EQ(seen.size(), 6U);
  EXPECT_EQ(activity.lost(), 0);
  EXPECT_TRUE(activity.take().empty());
}

TEST(ThreadsProfile, AnUnevenLoopShowsWhoWorked) {
  const Threads two(2);
  ThreadActivity activity(2);
  activity.set_step(0);
  const auto shortest = std::chrono::milliseconds(3);
  parallel([&](int thread, int) {
    const auto begin = std::chrono::steady_clock::now();
    while (thread == 1 && std::chrono::steady_clock::now() - begin < shortest) {
    }
  });
  std::vector<ProfileEvent> events;
  for (const auto& body : activity.take()) {
    ProfileEvent made =
        event(Activity::body, 0.0, std::chrono::duration<double>(body.end - body.begin).count(),
              body.step);
    made.track = "thread " + std::to_string(body.thread);
    events.push_back(std::move(made));
  }
  const ThreadBalance balance = balance_of(events, 1).front();
  EXPECT_EQ(balance.threads, 2);
  EXPECT_EQ(balance.bodies, 2);
  EXPECT_GE(balance.longest, 0.003);
  EXPECT_GE(*balance.imbalance(), 1.0);
}

TEST(ThreadsProfile, WithoutRoomBodiesAreCountedAsLost) {
  const Threads two(2);
  ThreadActivity activity(2, 4);
  for (int i = 0; i < 6; ++i) parallel([](int, int) {});
  EXPECT_EQ(activity.take().size(), 8U);
  EXPECT_EQ(activity.lost(), 4);
}

TEST(ThreadsProfile, OnlyRegionsOfTheWatchedThreadAreSeen) {
  const Threads two(2);
  {
    ThreadActivity activity(2);
    EXPECT_EQ(parallel_observer, &activity);
    std::thread([] { parallel([](int, int) {}); }).join();
    EXPECT_TRUE(activity.take().empty());
  }
  EXPECT_EQ(parallel_observer, nullptr);
}

TEST(Profile, ImbalanceIsTheLongestOverTheMean) {
  std::vector<ProfileEvent> events = {event(Activity::body, 0.0, 3.0, 0),
                                      event(Activity::body, 0.0, 1.0, 0),
                                      event(Activity::step, 0.0, 3.0, 1)};
  events[0].track = "thread 0";
  events[1].track = "thread 1";
  const auto balances = balance_of(events, 2);
  EXPECT_DOUBLE_EQ(*balances[0].imbalance(), 1.5);
  EXPECT_FALSE(balances[1].imbalance().has_value());
}

StepTime step_of(std::int64_t index, const char* layer, const char* ops, const char* phase,
                 double seconds) {
  StepTime step;
  step.index = index;
  step.layer = layer;
  step.ops = ops;
  step.phase = phase;
  step.kernel = std::string("native:") + ops;
  step.seconds = seconds;
  step.flops = step.work_flops = 1000;
  step.bytes_read = 600;
  step.bytes_written = 400;
  step.working_set_bytes = 1000;
  step.unit = "fp32";
  return step;
}

Profile small_profile() {
  Profile profile;
  profile.executor.device = "cpu";
  profile.steps = {step_of(0, "conv1", "conv2d+bias+activation", "forward", 3.0),
                   step_of(1, "fc", "linear", "forward", 1.0),
                   step_of(2, "loss", "softmax_cross_entropy", "forward", 0.5),
                   step_of(3, "fc", "linear_backward_weights", "backward_weights", 2.0),
                   step_of(4, "conv1", "conv2d_backward_weights", "backward_weights", 2.5),
                   step_of(5, "conv1", "sgd", "optimizer", 0.5)};
  profile.profiled_seconds = 10.0;
  profile.outside.cpu = 0.3;
  profile.outside.data = 0.2;
  return profile;
}

// One byte or operation a nanosecond: a step of the small profile takes a microsecond at its roof.
Roofs small_roofs() {
  Roofs roofs;
  roofs.device = "cpu";
  roofs.compute = {{"fp32", "scalar", 1e9}};
  roofs.memory = {{"memory", "read", 1e9, 0}};
  return roofs;
}

double sum_of(const ProfileTable& table) {
  double sum = 0.0;
  for (const TableRow& row : table.rows) sum += row.seconds;
  return sum;
}

const TableRow& row_of(const ProfileTable& table, const std::string& name) {
  for (const TableRow& row : table.rows) {
    if (row.name == name) return row;
  }
  throw std::runtime_error("no row " + name);
}

TEST(ProfileTables, EveryTableAddsUpToTheIteration) {
  const Profile profile = small_profile();
  for (std::size_t by = 0; by < kTableNames.size(); ++by) {
    const ProfileTable table = table_of(profile, small_roofs(), static_cast<TableBy>(by));
    EXPECT_NEAR(sum_of(table), 10.0, 1e-12) << kTableNames[by];
    double shares = 0.0;
    for (const TableRow& row : table.rows) shares += row.share;
    EXPECT_NEAR(shares, 1.0, 1e-12) << kTableNames[by];
    EXPECT_NEAR(sum_of(top_of(table, 1)), 10.0, 1e-12) << kTableNames[by];
  }
}

TEST(ProfileTables, AFusedStepIsAnOpOfItsOwn) {
  const ProfileTable table = table_of(small_profile(), {}, TableBy::op);
  EXPECT_DOUBLE_EQ(row_of(table, "conv2d+bias+activation").seconds, 3.0);
  EXPECT_THROW((void)row_of(table, "bias"), std::runtime_error);
  EXPECT_DOUBLE_EQ(row_of(table, "between steps: waiting for data").seconds, 0.2);
}

TEST(ProfileTables, RowsAreSortedAndTheRestBecomesOneRow) {
  const ProfileTable table = table_of(small_profile(), small_roofs(), TableBy::layer);
  EXPECT_EQ(table.rows[0].name, "conv1");
  EXPECT_EQ(table.rows[0].steps, 3);
  EXPECT_DOUBLE_EQ(table.rows[0].seconds, 6.0);
  EXPECT_NEAR(*table.rows[0].point->efficiency(), 3e-6 / 6.0, 1e-12);
  const ProfileTable top = top_of(table, 1);
  ASSERT_EQ(top.rows.size(), 4U);
  EXPECT_EQ(top.rows[1].name, "2 others");
  EXPECT_EQ(top.rows[1].steps, 3);
  EXPECT_DOUBLE_EQ(top.rows[1].seconds, 3.5);
}

TEST(ProfileTables, StudyTwoHasItsRows) {
  const ProfileTable table = table_of(small_profile(), {}, TableBy::study2);
  EXPECT_DOUBLE_EQ(row_of(table, "matrix multiplication").seconds, 1.0);
  EXPECT_DOUBLE_EQ(row_of(table, "softmax").seconds, 0.5);
  EXPECT_DOUBLE_EQ(row_of(table, "gradient computation").seconds, 4.5);
  EXPECT_DOUBLE_EQ(row_of(table, "parameter update").seconds, 0.5);
  EXPECT_DOUBLE_EQ(row_of(table, "matrix multiplication + bias + ReLU (fused)").seconds, 3.0);
}

TEST(ProfileTables, GainsAreRankedByTheTimeLost) {
  const std::vector<Gain> gains =
      gains_of(table_of(small_profile(), small_roofs(), TableBy::phase));
  ASSERT_EQ(gains.size(), 3U);
  // Both take 4.5 s, but two steps could be done sooner than three.
  EXPECT_EQ(gains[0].name, "backward_weights");
  EXPECT_EQ(gains[1].name, "forward");
  EXPECT_NEAR(gains[0].least_seconds, 2e-6, 1e-15);
  EXPECT_NEAR(gains[0].lost_seconds, 4.5 - 2e-6, 1e-12);
  EXPECT_NEAR(gains[0].step_seconds, 5.5 + 2e-6, 1e-12);
  EXPECT_TRUE(gains_of(table_of(small_profile(), {}, TableBy::phase)).empty());
}

std::unique_ptr<MeasuredStep> step_with(const std::string& backend, bool loader = false) {
  EngineStepConfig config;
  config.step.model = default_config("mnist_cnn");
  config.step.model.height = config.step.model.width = 12;
  config.step.batch = 4;
  config.step.optimizer = SgdAttributes{.momentum = 0.9};
  config.work.model = "mnist_cnn";
  config.work.batch = 4;
  config.executor = {.backend = backend, .device = "cpu", .threads = thread_count()};
  config.request.backend = backend;
  config.device = make_cpu_device();
  config.data = std::make_shared<Dataset>(make_synthetic({.channels = 1,
                                                          .height = 12,
                                                          .width = 12,
                                                          .classes = 10,
                                                          .count = 16,
                                                          .test_count = 1,
                                                          .seed = 1})
                                              .train);
  config.loader = loader;
  return make_engine_step(std::move(config));
}

double outside_and_steps(const Profile& profile) {
  double sum = profile.outside.total();
  for (const StepTime& step : profile.steps) sum += step.seconds;
  return sum;
}

TEST(ProfileCollection, EveryStepOfEveryIterationHasItsEventOnEveryBackend) {
  for (const char* backend : {"reference", "native", "onednn"}) {
    SCOPED_TRACE(backend);
    const auto step = step_with(backend);
    CollectOptions options;
    options.iterations = 3;
    const Collected collected = collect_profile(*step, options);
    const Profile& profile = collected.profile;
    EXPECT_EQ(collected.status, RunStatus::complete);
    EXPECT_EQ(profile.iterations, 3);
    ASSERT_FALSE(profile.steps.empty());
    std::set<std::pair<std::int64_t, std::int64_t>> seen;
    double before = 0.0;
    for (const ProfileEvent& each : profile.events) {
      EXPECT_LE(before, each.begin);
      EXPECT_LE(each.begin, each.end);
      before = each.begin;
      if (each.activity == Activity::step) seen.emplace(each.iteration, each.step);
    }
    EXPECT_EQ(seen.size(), 3 * profile.steps.size());
    EXPECT_NEAR(outside_and_steps(profile), profile.profiled_seconds, 1e-12);
    EXPECT_NEAR(profile.breakdown.total(), profile.profiled_seconds, 1e-12);
    EXPECT_GT(profile.unprofiled_seconds, 0.0);
    const bool says_so = std::any_of(
        profile.missing.begin(), profile.missing.end(),
        [](const Missing& missing) { return missing.what == "thread activity of onednn's steps"; });
    EXPECT_EQ(says_so, std::string(backend) == "onednn");
    // Six of three times three are not watched.
    EXPECT_EQ(std::count_if(collected.samples.begin(), collected.samples.end(),
                            [](const Sample& s) { return s.kind == SampleKind::measured; }),
              6);
  }
}

TEST(ProfileCollection, ALoaderShowsItsWaitAndItsHandOver) {
  const auto step = step_with("native", true);
  const Profile profile = collect_profile(*step, {.iterations = 2, .go_on = {}}).profile;
  std::int64_t waits = 0, uploads = 0;
  for (const ProfileEvent& each : profile.events) {
    waits += each.activity == Activity::data_wait ? 1 : 0;
    uploads += each.activity == Activity::upload ? 1 : 0;
  }
  EXPECT_EQ(waits, 2);
  EXPECT_EQ(uploads, 2);
  EXPECT_GT(profile.breakdown.copy, 0.0);
  EXPECT_NEAR(outside_and_steps(profile), profile.profiled_seconds, 1e-12);
}

// Fails after some iterations.
class FailingStep final : public MeasuredStep {
 public:
  FailingStep(std::unique_ptr<MeasuredStep> step, std::int64_t good)
      : step_(std::move(step)), good_(good) {}
  [[nodiscard]] const Subject& subject() const override { return step_->subject(); }
  Preparation prepare() override { return step_->prepare(); }
  void run(std::int64_t count, const std::function<bool(const Iteration&)>& see) override {
    step_->run(count, [&](const Iteration& iteration) {
      if (good_-- == 0) fail("the disk is gone");
      return see(iteration);
    });
  }
  [[nodiscard]] StepDetails details(bool timed) override { return step_->details(timed); }
  [[nodiscard]] std::optional<EnginePlan> engine() override {
    return ours ? step_->engine() : std::nullopt;
  }
  void close() override {
    closed = true;
    step_->close();
  }
  bool closed = false, ours = true;

 private:
  std::unique_ptr<MeasuredStep> step_;
  std::int64_t good_;
};

TEST(ProfileCollection, ARunThatFailsInTheMiddleKeepsWhatWasWatched) {
  // Three to warm up, four unwatched, two watched.
  FailingStep step(step_with("native"), 9);
  const Collected collected = collect_profile(step, {.iterations = 4, .go_on = {}});
  EXPECT_EQ(collected.status, RunStatus::failed);
  EXPECT_NE(collected.error.find("the disk is gone"), std::string::npos);
  EXPECT_EQ(collected.profile.iterations, 2);
  EXPECT_NEAR(outside_and_steps(collected.profile), collected.profile.profiled_seconds, 1e-12);
  EXPECT_TRUE(step.closed);
  EXPECT_EQ(parallel_observer, nullptr);

  FailingStep early(step_with("native"), 5);
  EXPECT_THROW((void)collect_profile(early, {.iterations = 4, .go_on = {}}), Error);
  EXPECT_TRUE(early.closed);
}

TEST(ProfileCollection, AnInterruptionKeepsWhatWasWatched) {
  const auto step = step_with("native");
  CollectOptions options;
  options.iterations = 4;
  options.go_on = [](std::int64_t done, std::int64_t total) {
    EXPECT_LE(done, total);
    return done < 9;
  };
  const Collected collected = collect_profile(*step, options);
  EXPECT_EQ(collected.status, RunStatus::interrupted);
  EXPECT_EQ(collected.profile.iterations, 2);
}

TEST(ProfileCollection, NoIterationsAndPeersAreRefused) {
  const auto step = step_with("native");
  EXPECT_THROW((void)collect_profile(*step, {.iterations = 0, .go_on = {}}), Error);
  FailingStep elsewhere(step_with("native"), 99);
  elsewhere.ours = false;
  EXPECT_THROW((void)collect_profile(elsewhere, {.iterations = 1, .go_on = {}}), Error);
  EXPECT_TRUE(elsewhere.closed);
}

TEST(ProfileCounters, CountOrSayWhyNot) {
  const auto step = step_with("native");
  CollectOptions options;
  options.iterations = 1;
  options.counters = true;
  const Profile profile = collect_profile(*step, options).profile;
  if (profile.counters.empty()) {
    ASSERT_EQ(profile.missing.size(), 1U);
    EXPECT_EQ(profile.missing[0].what, "hardware counters");
    EXPECT_FALSE(profile.missing[0].reason.empty());
    EXPECT_FALSE(profile.steps[0].counted_bytes.has_value());
    return;
  }
  ASSERT_EQ(profile.counters.size(), profile.steps.size());
  for (const StepCounters& counted : profile.counters) {
    if (counted.instructions) {
      EXPECT_GT(*counted.instructions, 0.0);
    }
  }
}

}  // namespace
}  // namespace ridgeline
