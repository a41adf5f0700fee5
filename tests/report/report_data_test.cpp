// The numbers that reports are made from.

#include <gtest/gtest.h>

#include "report/data.h"
#include "support/data_files.h"
#include "support/store_rows.h"

namespace ridgeline::report {
namespace {

using testing::example_environment;
using testing::example_items;
using testing::example_run;
using testing::example_study;

class ReportData : public testing::FileTest {};

// A run of twelve iterations of 2 ms in blocks of three; one that is slower is no outlier to drop.
RunId measured_run(Store& store, RunRecord run, double seconds) {
  const RunId id = store.begin(run);
  std::vector<Sample> samples;
  for (int i = 0; i < 12; ++i) {
    Sample sample;
    sample.block = i / 3;
    sample.iteration = i;
    sample.kind = i < 2 ? SampleKind::warmup : SampleKind::measured;
    sample.wall_seconds = i == 5 ? 3.0 * seconds : seconds;
    samples.push_back(sample);
  }
  store.add(id, samples);
  store.finish(id, RunStatus::complete, "", {}, {});
  return id;
}

TEST_F(ReportData, RatesAreSamplesOverTheMedianOfTheMeasuredIterations) {
  Store store(folder_ / "r.db");
  store.add(example_environment());
  RunRecord run = example_run();
  run.work.batch = 64;
  run.numbers = {{"training_flops", 1e9}};
  const RunId id = measured_run(store, run, 0.002);
  const Data data(store);
  const RunView* view = data.find(id);
  ASSERT_NE(view, nullptr);
  ASSERT_TRUE(view->seconds && view->rate && view->flops_per_second);
  EXPECT_DOUBLE_EQ(view->seconds->value, 0.002);
  EXPECT_EQ(view->seconds->samples, 10);
  EXPECT_DOUBLE_EQ(view->rate->value, 32000.0);
  EXPECT_LE(view->rate->low, view->rate->value);
  EXPECT_GE(view->rate->high, view->rate->value);
  EXPECT_DOUBLE_EQ(*view->flops_per_second, 1e9 / 0.002);
  EXPECT_FALSE(data.point(*view).has_value());  // no step was timed
  EXPECT_FALSE(data.sensor(*view, "cpu_mhz").has_value());
}

TEST_F(ReportData, QueuedIterationsGiveTheRateWhereTheDeviceHasThem) {
  Store store(folder_ / "r.db");
  store.add(example_environment());
  RunRecord run = example_run();
  run.work.batch = 100;
  const RunId id = measured_run(store, run, 0.002);
  Sample queued;
  queued.kind = SampleKind::queued;
  queued.wall_seconds = 0.0011;
  queued.device_seconds = 0.001;
  store.add(id, std::vector<Sample>(4, queued));
  const Data data(store);
  EXPECT_DOUBLE_EQ(data.find(id)->seconds->value, 0.002);
  EXPECT_DOUBLE_EQ(data.find(id)->rate->value, 100000.0);
}

TEST_F(ReportData, ATrainingsRateLeavesItsFirstEpochOut) {
  Store store(folder_ / "r.db");
  store.add(example_environment());
  RunRecord run = example_run();
  run.command = "train";
  run.work.batch = 10;
  run.work.learning_rate = 0.1;
  const RunId id = store.begin(run);
  std::vector<EpochRecord> epochs(3);
  for (std::size_t i = 0; i < 3; ++i) {
    epochs[i].epoch = static_cast<std::int64_t>(i) + 1;
    epochs[i].samples = 1000;
    epochs[i].seconds = i == 0 ? 9.0 : 2.0;
  }
  store.add(id, epochs);
  store.finish(id, RunStatus::complete, "", {}, {});
  const Data data(store);
  const RunView* view = data.find(id);
  EXPECT_DOUBLE_EQ(view->rate->value, 500.0);
  EXPECT_DOUBLE_EQ(view->seconds->value, 0.02);
  EXPECT_EQ(view->rate->samples, 2);
  EXPECT_EQ(view->word("learning_rate"), "0.1");
  EXPECT_EQ(view->number("epochs"), 3.0);
}

TEST_F(ReportData, BuildsOnOneMachineAreOneMachineWithTheNewestCeilings) {
  Store store(folder_ / "r.db");
  EnvironmentRecord older = example_environment(), newer = older, other = older;
  newer.key = "newer";
  newer.fingerprint = R"({"revision": "b"})";
  other.key = "other";
  other.label = "cloud";
  for (const EnvironmentRecord& each : {older, newer, other}) store.add(each);
  Ceiling ceiling;
  ceiling.device = "cpu";
  ceiling.kind = "compute";
  ceiling.value = 1.0;
  store.replace_ceilings(older.key, "cpu", std::vector<Ceiling>{ceiling});
  ceiling.value = 2.0;
  store.replace_ceilings(newer.key, "cpu", std::vector<Ceiling>{ceiling});
  RunRecord run = example_run();
  run.started = "2026-01-01T00:00:00.000Z";
  run.environment = older.key;
  (void)measured_run(store, run, 0.001);
  run.started = "2026-01-02T00:00:00.000Z";
  run.environment = newer.key;
  (void)measured_run(store, run, 0.001);
  run.environment = other.key;
  (void)measured_run(store, run, 0.001);
  const Data data(store);
  ASSERT_EQ(data.machines().size(), 2U);
  EXPECT_EQ(data.runs()[0].machine, data.runs()[1].machine);
  EXPECT_NE(data.runs()[0].machine, data.runs()[2].machine);
  const Machine& machine = data.machine_of(data.runs()[0]);
  EXPECT_EQ(machine.environment.key, "newer");
  ASSERT_EQ(machine.ceilings.size(), 1U);
  EXPECT_EQ(machine.ceilings[0].value, 2.0);
  EXPECT_EQ(data.machine_of(data.runs()[2]).name, "cloud");
}

TEST_F(ReportData, AStudyHasTheRunsOfItsItemsThatAreDone) {
  Store store(folder_ / "r.db");
  store.add(example_environment());
  store.put(example_study());
  store.put(example_items());  // the first is done, the second waits
  RunRecord run = example_run();
  run.study = example_study().uuid;
  run.item = example_items()[0].key;
  const RunId done = measured_run(store, run, 0.001);
  run.item = example_items()[1].key;
  (void)measured_run(store, run, 0.001);
  run.study = run.item = "";
  const RunId other = measured_run(store, run, 0.001);
  run.study = example_study().uuid;
  run.item = example_items()[0].key;
  (void)store.begin(run);  // and never finished
  const Data data(store);
  ASSERT_EQ(data.studies().size(), 1U);
  const StudyView& study = data.studies()[0];
  ASSERT_EQ(study.runs.size(), 1U);
  EXPECT_EQ(study.runs[0]->run.id, done);
  EXPECT_EQ(study.runs[0]->part, "main");
  EXPECT_EQ(study.items.size(), 2U);
  ASSERT_EQ(data.other_runs().size(), 1U);
  EXPECT_EQ(data.other_runs()[0]->run.id, other);
  EXPECT_EQ(data.unfinished().size(), 1U);
}

TEST_F(ReportData, AxesAreReadFromWorkExecutorAndSettings) {
  RunView view;
  view.run.work.settings = {{"activation", "gelu"}, {"depth", "3"}, {"filters", "8,16"}};
  view.run.work.batch = 32;
  view.run.executor.backend = "cudnn";
  EXPECT_EQ(view.word("activation"), "gelu");
  EXPECT_EQ(view.number("depth"), 3.0);
  EXPECT_FALSE(view.number("activation").has_value());
  EXPECT_EQ(view.word("filters"), "8,16");
  EXPECT_FALSE(view.number("filters").has_value());
  EXPECT_EQ(view.word("dep"), "");
  EXPECT_EQ(view.word("batch"), "32");
  EXPECT_EQ(view.word("backend"), "cudnn");
  EXPECT_EQ(view.number("momentum"), 0.0);
  EXPECT_EQ(view.word("learning_rate"), "");
  // One batch on the device is no data set.
  EXPECT_FALSE(view.number("samples").has_value());
  view.run.work.data_samples = 6000;
  EXPECT_EQ(view.number("samples"), 6000.0);
  // Epochs that were done, not those that were asked for.
  view.run.work.epochs = 10;
  view.epochs.resize(2);
  view.epochs.back().epoch = 2;
  EXPECT_EQ(view.number("epochs"), 2.0);
  view.run.numbers["parameters"] = 1e6;
  EXPECT_EQ(view.word("parameters"), "1000000");
}

TEST_F(ReportData, ExecutorsAreNamedByBackendDevicePrecisionAndOptions) {
  RunView view;
  view.run.executor.backend = "cudnn";
  view.run.executor.device = "cuda:0";
  view.run.work.precision = "bf16";
  EXPECT_EQ(view.executor(), "cudnn on cuda:0 in bf16");
  view.run.executor.recompute = true;
  view.run.executor.disabled_passes = {"fusion", "slices"};
  EXPECT_EQ(view.executor(), "cudnn on cuda:0 in bf16 (recompute, without fusion, slices)");
  EXPECT_EQ(view.executor("4 threads"),
            "cudnn on cuda:0 in bf16 (recompute, without fusion, slices, 4 threads)");
  // A peer's name tells the device; a hyphen does not make a peer.
  view.run.executor = {};
  view.run.executor.backend = "torch-cuda";
  view.run.executor.device = "cuda:0";
  view.run.executor.modes = {"channels_last"};
  EXPECT_EQ(view.executor(), "torch-cuda in bf16 (channels_last)");
  view.run.executor.backend = "my-backend";
  EXPECT_EQ(view.executor(), "my-backend on cuda:0 in bf16 (channels_last)");
}

}  // namespace
}  // namespace ridgeline::report
