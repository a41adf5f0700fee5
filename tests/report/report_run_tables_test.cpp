// The tables of reports: known answers of phases, operations, memory, trainings and machines.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "support/report_tables.h"

namespace ridgeline::report {
namespace {

using testing::column_of;
using testing::contains;
using testing::make;
using testing::notes_of;
using testing::one;
using testing::ReportRun;
using testing::ReportTraining;
using testing::row_of;
using testing::TempStore;
using testing::trial;
using testing::value;

TEST(ReportTables, PhasesComeFromSplitIterations) {
  const Table table = one(trial().data(), "phases", {"speed", "training"});
  const std::vector<std::string> native = {"mnist_cnn", "native"};
  EXPECT_NEAR(value(table, native, "forward"), 3.0, 1e-9);
  EXPECT_NEAR(value(table, native, "backward"), 6.0, 1e-9);
  EXPECT_NEAR(value(table, native, "optimizer"), 1.0, 1e-9);
  EXPECT_NEAR(value(table, native, "training"), 0.04 + 7.5, 1e-9);
  EXPECT_EQ(value(table, native, "iterations"), 1.0 + 3.0 * 94.0);
}

TEST(ReportTables, OperationsStandSideBySideAndAddUp) {
  const Table table = one(trial().data(), "operations", {"profile"});
  const std::string cpu = "native, on desk", gpu = "auto on cuda:0, on server";
  EXPECT_NEAR(value(table, {"matrix multiplication"}, cpu), 0.25, 1e-9);
  EXPECT_NEAR(value(table, {"matrix multiplication"}, gpu), 0.05, 1e-9);
  EXPECT_NEAR(value(table, {"matrix multiplication"}, "speed-up of " + gpu), 5.0, 1e-9);
  EXPECT_NEAR(value(table, {"ReLU"}, cpu), 0.05, 1e-9);
  EXPECT_NEAR(value(table, {"softmax"}, cpu), 0.05, 1e-9);
  EXPECT_NEAR(value(table, {"gradient computation"}, cpu), 0.45, 1e-9);
  EXPECT_NEAR(value(table, {"parameter update"}, cpu), 0.10, 1e-9);
  double sum = 0.0;
  for (std::size_t r = 0; r + 1 < table.rows.size(); ++r) sum += table.rows[r][1].value.value();
  EXPECT_NEAR(sum, value(table, {"iteration"}, cpu), 1e-9);
  EXPECT_EQ(table.rows[0][0].text, "matrix multiplication");
}

TEST(ReportTables, OpBreakdownAddsUpToTheIteration) {
  const std::vector<Table> tables = make(trial().data(), "op-breakdown", {"profile"});
  ASSERT_EQ(tables.size(), 2U);
  for (const Table& table : tables) {
    double share = 0.0;
    for (std::size_t r = 0; r + 1 < table.rows.size(); ++r) {
      share += table.rows[r][column_of(table, "share")].value.value();
    }
    EXPECT_NEAR(share, 100.0, 1e-6);
    EXPECT_EQ(table.rows[0][0].text, "linear");  // both matrix products
    EXPECT_EQ(value(table, {"linear"}, "steps"), 2.0);
  }
}

TEST(ReportTables, BreakdownAddsUpToTheIteration) {
  const Table table = one(trial().data(), "breakdown", {"profile"});
  const std::vector<std::string> native = {"mlp", "native"};
  EXPECT_NEAR(value(table, native, "kernel"), 0.9, 1e-9);
  EXPECT_NEAR(value(table, native, "iteration"), 1.0, 1e-9);
  EXPECT_NEAR(value(table, native, "kernel share"), 90.0, 1e-9);
  EXPECT_EQ(row_of(table, native)[column_of(table, "data")].text, "0");
}

TEST(ReportTables, MemoryHasAnOwnerForEveryByte) {
  const Table table = one(trial().data(), "memory", {"speed"});
  const std::vector<std::string> native = {"mnist_cnn", "native"};
  EXPECT_NEAR(value(table, native, "parameters"), 0.4, 1e-12);
  EXPECT_NEAR(value(table, native, "activations"), 3.2, 1e-12);
  EXPECT_NEAR(value(table, native, "planned"), 1.300264 + 0.056 * 64, 1e-9);
  EXPECT_NEAR(value(table, native, "overhead"), 21.0, 1e-9);
  for (const char* who : {"native", "auto on cuda:0"}) {
    EXPECT_NEAR(value(table, {"mnist_cnn", who}, "planned") +
                    value(table, {"mnist_cnn", who}, "overhead") +
                    value(table, {"mnist_cnn", who}, "others"),
                value(table, {"mnist_cnn", who}, "total"), 1e-9);
  }
  const Cell& peer = row_of(table, {"mnist_cnn", "torch-cuda"})[column_of(table, "parameters")];
  EXPECT_EQ(peer.text, "n/a");
  EXPECT_NEAR(value(table, {"mnist_cnn", "torch-cuda"}, "total"), 76.8, 1e-9);
}

TEST(ReportTables, TrainingKeepsTheFirstEpochApartAndTheLastAccuracyIsTheLast) {
  const Table table = one(trial().data(), "training");
  ASSERT_EQ(table.rows.size(), 4U);
  const std::vector<std::string> row = {"desk", "0.01"};
  EXPECT_NEAR(value(table, row, "first epoch"), 3.04, 1e-9);
  EXPECT_NEAR(value(table, row, "epoch"), 2.25, 1e-9);
  EXPECT_NEAR(value(table, row, "total"), 7.54, 1e-9);
  EXPECT_NEAR(value(table, row, "throughput"), 0.5 * (6000.0 / 2.0 + 6000.0 / 2.5), 1e-9);
  EXPECT_NEAR(value(table, row, "final Acc@1"), 84.0, 1e-9);
  EXPECT_NEAR(value(table, row, "max Acc@1"), 85.0, 1e-9);
  EXPECT_NEAR(value(table, row, "RAM"), 219.0, 1e-9);
  const Cell& none = row_of(table, row)[column_of(table, "VRAM")];
  EXPECT_EQ(none.text, "n/a");  // not 0
  const Cell& chance = row_of(table, {"desk", "0.1"})[column_of(table, "final Acc@1")];
  EXPECT_TRUE(contains(notes_of(table, chance), "accuracy at chance"));
  EXPECT_TRUE(contains(notes_of(table, row_of(table, row)[column_of(table, "throughput")]),
                       "fashion-mnist in place of mnist"));
}

TEST(ReportTables, TargetsTellEpochsAndTimeOrWhyNot) {
  const Table table = one(trial().data(), "targets");
  const std::vector<std::string> row = {"desk", "0.01"};
  EXPECT_EQ(value(table, row, "85%", "epochs"), 2.0);
  EXPECT_NEAR(value(table, row, "85%", "s"), 5.04, 1e-9);
  const Cell& never = row_of(table, row)[column_of(table, "90%", "s")];
  EXPECT_EQ(never.text, "n/a");
  EXPECT_TRUE(contains(notes_of(table, never), "not reached in 3 epochs"));
  EXPECT_EQ(value(table, {"server", "0.1"}, "90%", "epochs"), 3.0);
}

TEST(ReportTables, AResumedTrainingCountsFromItsTrueBeginning) {
  const TempStore store("resumed", [](Store& into) {
    testing::write_report_machines(into);
    ReportTraining training;
    training.run.part = "training";
    training.first_epoch = 4;
    training.accuracies = {0.82, 0.91, 0.90};
    training.former = {{"former_seconds", 20.0}, {"former_best_test_accuracy", 0.86}};
    testing::write_report_training(into, training);
    // An older version stored no time of the parts before.
    training.former = {};
    training.learning_rate = 0.1;
    testing::write_report_training(into, training);
  });
  const Table table = one(store.data(), "training");
  const std::vector<std::string> known = {"0.01"}, unknown = {"0.1"};
  EXPECT_EQ(value(table, known, "epochs"), 7.0);
  const Cell& first = row_of(table, known)[column_of(table, "first epoch")];
  EXPECT_EQ(first.text, "n/a");
  EXPECT_TRUE(contains(notes_of(table, first), "resumed after epoch 4"));
  // The first epoch of a part has caches to fill too.
  EXPECT_NEAR(value(table, known, "epoch"), 2.25, 1e-9);
  EXPECT_NEAR(value(table, known, "throughput"), 0.5 * (6000.0 / 2.0 + 6000.0 / 2.5), 1e-9);
  EXPECT_NEAR(value(table, known, "total"), 20.0 + 7.54, 1e-9);
  EXPECT_NEAR(value(table, known, "max Acc@1"), 91.0, 1e-9);
  const Cell& total = row_of(table, unknown)[column_of(table, "total")];
  EXPECT_EQ(total.text, "n/a");
  EXPECT_TRUE(contains(notes_of(table, total), "the time before is not stored"));

  const Table targets = one(store.data(), "targets");
  EXPECT_EQ(value(targets, known, "90%", "epochs"), 6.0);
  EXPECT_NEAR(value(targets, known, "90%", "s"), 20.0 + 5.04, 1e-9);
  const Cell& before = row_of(targets, known)[column_of(targets, "85%", "s")];
  EXPECT_EQ(before.text, "n/a");
  EXPECT_TRUE(contains(notes_of(targets, before), "reached before"));
  EXPECT_EQ(value(targets, unknown, "90%", "epochs"), 6.0);
  EXPECT_EQ(row_of(targets, unknown)[column_of(targets, "90%", "s")].text, "n/a");
}

TEST(ReportTables, SweepTakesOneAxisAtATime) {
  const Table rates = one(trial().data(), "sweep", {"training"});
  EXPECT_TRUE(contains(rates.title, "learning rate"));
  ASSERT_EQ(rates.rows.size(), 4U);
  EXPECT_EQ(rates.rows[0][column_of(rates, "learning rate")].value, 0.01);
  EXPECT_NEAR(rates.rows[1][column_of(rates, "final Acc@1")].value.value(), 9.95, 1e-9);
  const Table batches = one(trial().data(), "sweep", {"sweep"});
  EXPECT_TRUE(contains(batches.title, "batch"));
  EXPECT_EQ(batches.rows.size(), 8U);
}

TEST(ReportTables, SweepFindsOptionsOfTheNetworkAndOptimizers) {
  const TempStore store("axes", [](Store& into) {
    testing::write_report_machines(into);
    ReportTraining base;
    base.run.part = "axes";
    testing::write_report_training(into, base);
    // Steps that were measured alone have no say in which learning rate is usual.
    for (const char* model : {"mlp", "mnist_cnn", "resnet18"}) {
      ReportRun step = base.run;
      step.model = model;
      for (const char* backend : {"native", "onednn", "auto"}) {
        step.backend = backend;
        testing::write_report_bench(into, step);
      }
    }
    ReportTraining deep = base;
    deep.run.settings = {{"blocks", "2"}};
    testing::write_report_training(into, deep);
    ReportTraining smooth = base;
    smooth.run.settings = {{"activation", "tanh"}};
    testing::write_report_training(into, smooth);
    ReportTraining fast = base;
    fast.learning_rate = 0.1;
    testing::write_report_training(into, fast);
    ReportTraining adam = base;
    adam.optimizer = "adam";
    adam.learning_rate = 0.001;
    testing::write_report_training(into, adam);
    ReportTraining large = base;
    large.run.batch = 256;
    testing::write_report_training(into, large);
  });
  std::vector<std::string> titles;
  for (const Table& table : make(store.data(), "sweep")) {
    titles.push_back(table.title);
    EXPECT_EQ(table.rows.size(), 2U) << table.title;
  }
  EXPECT_EQ(titles,
            (std::vector<std::string>{"Sweep: batch", "Sweep: learning rate", "Sweep: optimizer",
                                      "Sweep: activation", "Sweep: blocks"}));
}

TEST(ReportTables, FullBatchesGrowWithTheirSamples) {
  const TempStore store("full", [](Store& into) {
    testing::write_report_machines(into);
    for (const std::int64_t samples : {2000, 1000}) {
      ReportTraining training;
      training.samples = training.run.batch = samples;
      training.run.change = [](RunRecord& record) { record.work.full_batch = true; };
      testing::write_report_training(into, training);
    }
  });
  const Table table = one(store.data(), "sweep");
  EXPECT_EQ(table.title, "Sweep: samples");
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0][column_of(table, "samples")].value, 1000.0);
  EXPECT_EQ(table.rows[1][column_of(table, "samples")].value, 2000.0);
}

TEST(ReportTables, AnyFieldOfTheIdentityCanBeSwept) {
  const TempStore store("fields", [](Store& into) {
    testing::write_report_machines(into);
    ReportTraining training;
    testing::write_report_training(into, training);
    training.run.change = [](RunRecord& record) { record.work.augment = "flip"; };
    testing::write_report_training(into, training);
    training.run.change = [](RunRecord& record) { record.executor.recompute = true; };
    testing::write_report_training(into, training);
    training.run.change = [](RunRecord& record) {
      record.work.schedule = "step";
      record.work.schedule_step = 2;
      record.work.schedule_gamma = 0.5;
    };
    testing::write_report_training(into, training);
  });
  std::map<std::string, std::vector<std::string>> values;
  for (const Table& table : make(store.data(), "sweep")) {
    const std::string axis = table.title.substr(7);
    for (const auto& row : table.rows) values[axis].push_back(row[column_of(table, axis)].text);
  }
  const std::map<std::string, std::vector<std::string>> expected = {
      {"augmentation", {"none", "flip"}},
      {"schedule", {"constant", "step, a drop every 2 epochs, by a factor of 0.5"}},
      {"recompute", {"no", "yes"}}};
  EXPECT_EQ(values, expected);
}

TEST(ReportTables, InferenceHasPercentilesAndSaysWhenSamplesAreTooFewForThem) {
  const Table table = one(trial().data(), "inference");
  const std::vector<std::string> row = {"desk", "1"};
  EXPECT_NEAR(value(table, row, "p50"), 0.4, 1e-9);
  EXPECT_NEAR(value(table, row, "p99"), 0.6, 1e-9);
  EXPECT_NEAR(value(table, row, "throughput"), 2500.0, 1e-6);
  EXPECT_TRUE(contains(notes_of(table, row_of(table, row)[column_of(table, "p99")]),
                       "fewer samples than the percentile needs"));
  EXPECT_TRUE(row_of(table, row)[column_of(table, "p90")].notes.empty());
}

TEST(ReportTables, ResourcesAreMeansAndExtremesOfTheWholeRun) {
  const std::vector<Table> tables = make(trial().data(), "resources", {"speed"});
  ASSERT_EQ(tables.size(), 2U);
  const Table &use = tables[0], &heat = tables[1];
  const std::vector<std::string> gpu = {"mnist_cnn", "auto on cuda:0"},
                                 cpu = {"mnist_cnn", "native"};
  EXPECT_NEAR(value(use, gpu, "CPU"), 60.0, 1e-9);
  EXPECT_NEAR(value(use, gpu, "CPU max"), 70.0, 1e-9);
  EXPECT_NEAR(value(use, gpu, "GPU"), 80.0, 1e-9);
  EXPECT_NEAR(value(use, gpu, "GPU max"), 85.0, 1e-9);
  EXPECT_NEAR(value(use, gpu, "memory controller"), 40.0, 1e-9);
  EXPECT_EQ(value(use, gpu, "threads"), 4.0);
  EXPECT_NEAR(value(heat, gpu, "temperature"), 54.75, 1e-9);
  EXPECT_NEAR(value(heat, gpu, "temperature max"), 59.5, 1e-9);
  EXPECT_NEAR(value(heat, gpu, "clock min"), 1400.0, 1e-9);
  EXPECT_NEAR(value(heat, gpu, "power"), 250.0, 1e-9);
  EXPECT_NEAR(value(heat, gpu, "energy"), 0.002, 1e-12);
  const Cell& none = row_of(heat, cpu)[column_of(heat, "temperature")];
  EXPECT_TRUE(contains(notes_of(heat, none), "no thermometer of the processor"));
}

TEST(ReportTables, ParityShowsPeersAndTrainings) {
  const std::vector<Table> tables = make(trial().data(), "parity", {"speed", "training"});
  ASSERT_EQ(tables.size(), 2U);
  EXPECT_NEAR(value(tables[0], {"mlp", "torch-cpu"}, "largest difference"), 1e-7, 1e-15);
  EXPECT_EQ(row_of(tables[0], {"mlp", "torch-cpu"})[column_of(tables[0], "same")].text, "yes");
  EXPECT_NEAR(value(tables[1], {"server", "0.01"}, "difference", "%"), 0.0, 1e-12);
  EXPECT_NEAR(value(tables[1], {"server", "0.1"}, "difference", "points"), 90.0 - 9.95, 1e-9);
}

TEST(ReportTables, CeilingsStandBesideTheDataSheet) {
  const std::vector<Table> tables = make(trial().data(), "ceilings");
  ASSERT_EQ(tables.size(), 4U);
  EXPECT_NEAR(value(tables[0], {"desk", "fp32"}, "measured"), 100.0, 1e-9);
  EXPECT_NEAR(value(tables[0], {"desk", "fp32"}, "share"), 80.0, 1e-9);
  EXPECT_NEAR(value(tables[0], {"server", "tensor bf16"}, "share"), 50.0, 1e-9);
  EXPECT_NEAR(value(tables[1], {"server", "memory"}, "share"), 80.0, 1e-9);
  EXPECT_NEAR(value(tables[2], {"server", "to device"}, "measured"), 50.0, 1e-9);
  EXPECT_NEAR(value(tables[3], {"desk", "fork-join"}, "measured"), 1.0, 1e-9);
}

TEST(ReportTables, TheRangeOfACeilingEndsAtTheRoof) {
  const TempStore store("ceilings", [](Store& into) {
    testing::write_report_machines(into);
    std::vector<Ceiling> desk = into.ceilings("desk");
    const auto memory = std::find_if(desk.begin(), desk.end(),
                                     [](const Ceiling& each) { return each.subject == "memory"; });
    Ceiling write = *memory;  // slower than reading in the middle, faster at best
    write.path = "write";
    write.value = 0.9 * memory->value;
    write.high = 1.3 * memory->value;
    desk.push_back(write);
    into.replace_ceilings("desk", "cpu", desk);
  });
  const Table table = make(store.data(), "ceilings")[1];
  EXPECT_NEAR(value(table, {"desk", "memory"}, "measured"), 18.0, 1e-9);
  const Machine& desk = store.data().machines()[0];
  const Cell& cell = row_of(table, {"desk", "memory"})[column_of(table, "measured")];
  EXPECT_DOUBLE_EQ(cell.high.value() * 1e9,
                   roofs_of(desk.ceilings, "cpu", 0).memory.back().bytes_per_second);
}

}  // namespace
}  // namespace ridgeline::report
