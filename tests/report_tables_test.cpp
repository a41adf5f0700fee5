// The tables of reports: known answers from stores made by hand, and numbers that are computed once
// more from the raw rows by SQL.

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "base/error.h"
#include "report/exhibits.h"
#include "report/flags.h"
#include "support/report_store.h"

namespace ridgeline::report {
namespace {

using testing::ReportRun;
using testing::ReportTraining;

// A store in a file of its own, and the data read from it.
class TempStore {
 public:
  explicit TempStore(const std::string& name, const std::function<void(Store&)>& fill)
      : path_(std::filesystem::temp_directory_path() /
              ("ridgeline-tables-" + name + "-" + new_uuid() + ".db")) {
    store_ = std::make_unique<Store>(path_);
    fill(*store_);
    data_ = std::make_unique<Data>(*store_);
  }
  ~TempStore() {
    data_.reset();
    store_.reset();
    for (const char* end : {"", "-wal", "-shm"}) {
      std::filesystem::remove(path_.string() + end);
    }
  }
  TempStore(const TempStore&) = delete;
  TempStore& operator=(const TempStore&) = delete;

  [[nodiscard]] const Data& data() const { return *data_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Data> data_;
};

const TempStore& trial() {
  static const TempStore store("trial", testing::write_report_store);
  return store;
}

std::vector<Table> make(const Data& data, std::string_view name,
                        const std::set<std::string>& parts = {}) {
  ExhibitInput input{data, "x-" + std::string(name), "", {}};
  for (const RunView& run : data.runs()) {
    if (parts.empty() || parts.contains(run.part)) input.runs.push_back(&run);
  }
  for (const TableKind& kind : table_kinds()) {
    if (kind.name == name) return kind.make(input);
  }
  ADD_FAILURE() << "no table " << name;
  return {};
}

Table one(const Data& data, std::string_view name, const std::set<std::string>& parts = {}) {
  std::vector<Table> tables = make(data, name, parts);
  EXPECT_EQ(tables.size(), 1U) << name;
  return tables.empty() ? Table{} : tables[0];
}

std::size_t column_of(const Table& table, const std::string& title, const std::string& unit = "") {
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (table.columns[c].title == title && (unit.empty() || table.columns[c].unit == unit))
      return c;
  }
  ADD_FAILURE() << "no column " << title << " in " << table.id;
  return 0;
}

bool has_column(const Table& table, const std::string& title) {
  return std::any_of(table.columns.begin(), table.columns.end(),
                     [&](const TableColumn& column) { return column.title == title; });
}

// The row whose cells have these texts somewhere.
const std::vector<Cell>& row_of(const Table& table, const std::vector<std::string>& texts) {
  static const std::vector<Cell> none(40);
  for (const std::vector<Cell>& row : table.rows) {
    const bool fits = std::all_of(texts.begin(), texts.end(), [&](const std::string& text) {
      return std::any_of(row.begin(), row.end(),
                         [&](const Cell& cell) { return cell.text == text; });
    });
    if (fits) return row;
  }
  ADD_FAILURE() << "no such row in " << table.id << ": " << texts[0];
  return none;
}

double value(const Table& table, const std::vector<std::string>& texts, const std::string& title,
             const std::string& unit = "") {
  const Cell& cell = row_of(table, texts)[column_of(table, title, unit)];
  EXPECT_TRUE(cell.value) << title << " of " << texts[0] << " in " << table.id;
  return cell.value.value_or(std::nan(""));
}

std::string notes_of(const Table& table, const Cell& cell) {
  std::string text;
  for (const std::size_t note : cell.notes) text += table.notes.at(note) + "\n";
  return text;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(ReportTables, EveryNameOfAStudyHasAMaker) {
  std::vector<std::string_view> known, made;
  for (const study::Word& word : study::table_names()) known.push_back(word.name);
  for (const TableKind& kind : table_kinds()) made.push_back(kind.name);
  EXPECT_EQ(known, made);
}

TEST(ReportTables, EveryTableIsWholeAndSaysWhyANumberIsMissing) {
  std::set<std::string> ids;
  for (const TableKind& kind : table_kinds()) {
    const std::vector<Table> tables = make(trial().data(), kind.name);
    EXPECT_FALSE(tables.empty()) << kind.name;
    for (const Table& table : tables) {
      EXPECT_TRUE(ids.insert(table.id).second) << table.id;
      EXPECT_TRUE(std::all_of(table.id.begin(), table.id.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-';
      })) << table.id;
      EXPECT_FALSE(table.title.empty() || table.caption.empty()) << table.id;
      for (const TableColumn& column : table.columns) {
        EXPECT_FALSE(column.title.empty() || column.meaning.empty()) << table.id;
      }
      for (const std::vector<Cell>& row : table.rows) {
        ASSERT_EQ(row.size(), table.columns.size()) << table.id;
        for (const Cell& cell : row) {
          for (const std::size_t note : cell.notes) EXPECT_LT(note, table.notes.size()) << table.id;
          if (cell.text == "n/a") {
            EXPECT_FALSE(cell.value) << table.id;
            EXPECT_FALSE(cell.notes.empty()) << table.id;
          }
          if (!cell.low || !cell.high) continue;
          EXPECT_LE(*cell.low, *cell.value * (1.0 + 1e-12)) << table.id;
          EXPECT_GE(*cell.high, *cell.value * (1.0 - 1e-12)) << table.id;
        }
      }
    }
  }
}

TEST(ReportTables, TheStudysTitleStandsBeforeTheMakers) {
  ExhibitInput input{trial().data(), "t", "Table 2: throughput", {}};
  for (const RunView& run : trial().data().runs()) input.runs.push_back(&run);
  for (const TableKind& kind : table_kinds()) {
    for (const Table& table : kind.make(input)) {
      EXPECT_TRUE(table.title.starts_with("Table 2: throughput")) << table.title;
      EXPECT_TRUE(table.id == "t" || table.id.starts_with("t-")) << table.id;
    }
  }
}

TEST(ReportTables, NothingToShowGivesNoTable) {
  const ExhibitInput input{trial().data(), "t", "", {}};
  for (const TableKind& kind : table_kinds()) {
    // Ceilings belong to machines, not to runs.
    EXPECT_EQ(kind.make(input).empty(), kind.name != "ceilings") << kind.name;
  }
}

TEST(ReportTables, ComplexityCountsWhatTheNetworksAre) {
  const Table table = one(trial().data(), "complexity", {"speed"});
  ASSERT_EQ(table.rows.size(), 3U);
  // 784-10-10 with biases, and the network of study 5.
  EXPECT_NEAR(value(table, {"mlp"}, "parameters", "M"), 0.007960, 1e-12);
  EXPECT_NEAR(value(table, {"mnist_cnn"}, "parameters", "M"), 0.053866, 1e-12);
  const double macs = value(table, {"mlp"}, "forward", "MMAC");
  EXPECT_NEAR(macs, (784.0 * 10.0 + 10.0 * 10.0) * 1e-6, 1e-9);
  EXPECT_GT(value(table, {"mlp"}, "forward", "MFLOP"), 2.0 * macs);
  // The first layer has no data gradient: less than three times forward.
  EXPECT_LT(value(table, {"mlp"}, "training / forward"), 3.0);
  // By FLOPs.
  EXPECT_EQ(table.rows[0][0].text, "mlp");
  EXPECT_EQ(table.rows[2][0].text, "resnet18");
}

TEST(ReportTables, ComplexityOfAnUnknownNetworkIsMissingWithItsReason) {
  const TempStore store("unknown", [](Store& into) {
    testing::write_report_machines(into);
    ReportRun run;
    run.model = "resnet9000";
    testing::write_report_bench(into, run);
    run.model = "mlp";
    run.image = "999999x999999x999999";
    testing::write_report_bench(into, run);
  });
  const Table table = one(store.data(), "complexity");
  for (const std::vector<Cell>& row : table.rows) {
    const Cell& cell = row[column_of(table, "parameters")];
    EXPECT_EQ(cell.text, "n/a");
    EXPECT_TRUE(contains(notes_of(table, cell), "is no network of this program"));
  }
}

TEST(ReportTables, ThroughputHasRateTimeWorkAndEfficiency) {
  const Table table = one(trial().data(), "throughput", {"speed"});
  ASSERT_EQ(table.rows.size(), 12U);
  EXPECT_NEAR(value(table, {"mnist_cnn", "native"}, "throughput"), 6400.0, 1e-6);
  EXPECT_NEAR(value(table, {"mnist_cnn", "native"}, "iteration"), 10.0, 1e-9);
  EXPECT_NEAR(value(table, {"mnist_cnn", "native"}, "achieved"), 8.96, 1e-9);
  // Queued iterations follow each other faster than those that are waited for.
  EXPECT_NEAR(value(table, {"mnist_cnn", "auto on cuda:0"}, "throughput"), 64.0 / 0.00095, 1e-3);
  EXPECT_NEAR(value(table, {"mnist_cnn", "auto on cuda:0"}, "iteration"), 1.0, 1e-9);
  // 0.90048 ms at the roofs: computing bounds all steps but the ones that only move bytes.
  EXPECT_NEAR(value(table, {"mnist_cnn", "native"}, "of the roof"), 9.0048, 0.01);
  EXPECT_EQ(row_of(table, {"mnist_cnn", "native"})[column_of(table, "bound by")].text, "compute");
  const Cell& peer = row_of(table, {"mnist_cnn", "torch-cpu"})[column_of(table, "of the roof")];
  EXPECT_TRUE(contains(notes_of(table, peer), "a peer tells no times of single steps"));
  EXPECT_FALSE(has_column(table, "Acc@1"));
}

TEST(ReportTables, RowsComeByNetworkThenProcessorsEngineAndPeers) {
  const Table table = one(trial().data(), "throughput", {"speed"});
  const std::size_t executor = column_of(table, "executor");
  std::vector<std::string> rows;
  for (std::size_t r = 0; r < 8; ++r) {
    rows.push_back(table.rows[r][0].text + " " + table.rows[r][executor].text);
  }
  EXPECT_EQ(rows,
            (std::vector<std::string>{"mlp native", "mlp torch-cpu", "mlp auto on cuda:0",
                                      "mlp torch-cuda", "mnist_cnn native", "mnist_cnn torch-cpu",
                                      "mnist_cnn auto on cuda:0", "mnist_cnn torch-cuda"}));
}

TEST(ReportTables, AccuracyOfAnotherRunIsMarkedAndSoIsChance) {
  const Table table = one(trial().data(), "throughput", {"speed", "training"});
  const Cell& gpu = row_of(table, {"mnist_cnn", "auto on cuda:0"})[column_of(table, "Acc@1")];
  EXPECT_NEAR(gpu.value.value(), 90.0, 1e-9);
  EXPECT_TRUE(contains(notes_of(table, gpu), "accuracy of another run: 3 epochs"));
  EXPECT_TRUE(contains(notes_of(table, gpu), "fashion-mnist in place of mnist"));
  const Cell& cpu = row_of(table, {"mnist_cnn", "native"})[column_of(table, "Acc@1")];
  EXPECT_TRUE(contains(notes_of(table, cpu), "accuracy at chance"));
  const Cell& none = row_of(table, {"resnet18", "native"})[column_of(table, "Acc@1")];
  EXPECT_EQ(none.text, "n/a");
}

TEST(ReportTables, IterationsTellTheirScatter) {
  const Table table = one(trial().data(), "iterations", {"speed"});
  const std::vector<std::string> native = {"mnist_cnn", "native"};
  EXPECT_EQ(value(table, native, "count"), 22.0);
  EXPECT_NEAR(value(table, native, "mean"), 10.0, 1e-9);
  EXPECT_NEAR(value(table, native, "min"), 9.95, 1e-9);
  EXPECT_NEAR(value(table, native, "median"), 10.0, 1e-9);
  EXPECT_NEAR(value(table, native, "max"), 10.05, 1e-9);
  // Twice each of -5..5 thousandths: the sum of squares is 220, over 21.
  EXPECT_NEAR(value(table, native, "deviation"), 0.01 * std::sqrt(220.0 / 21.0), 1e-9);
}

TEST(ReportTables, BatchSweepHasUtilisationAndMemory) {
  const Table table = one(trial().data(), "batch-sweep", {"sweep"});
  ASSERT_EQ(table.rows.size(), 8U);
  EXPECT_EQ(table.rows[0][column_of(table, "batch")].text, "32");
  EXPECT_EQ(table.rows[3][column_of(table, "batch")].text, "256");
  const std::vector<std::string> cpu = {"desk", "256"}, gpu = {"server", "256"};
  EXPECT_NEAR(value(table, cpu, "throughput"), 256.0 / 0.034, 1e-6);
  EXPECT_NEAR(value(table, cpu, "CPU"), 60.0, 1e-9);
  EXPECT_NEAR(value(table, gpu, "GPU"), 80.0, 1e-9);
  EXPECT_NEAR(value(table, cpu, "memory"), 219.0, 1e-9);
  const Cell& none = row_of(table, cpu)[column_of(table, "GPU")];
  EXPECT_EQ(none.text, "n/a");
  EXPECT_TRUE(contains(notes_of(table, none), "it ran on a processor"));
  // One batch alone is no sweep.
  EXPECT_TRUE(make(trial().data(), "batch-sweep", {"speed"}).empty());
}

TEST(ReportTables, BatchGainsAreRatiosOfTheThroughputsShown) {
  const Table table = one(trial().data(), "batch-gains", {"sweep"});
  const std::vector<std::string> row = {"desk", "256"};
  EXPECT_NEAR(value(table, row, "over the smallest"), (256.0 / 0.034) / (32.0 / 0.006), 1e-9);
  EXPECT_NEAR(value(table, row, "over the one before"), (256.0 / 0.034) / (128.0 / 0.018), 1e-9);
  EXPECT_EQ(row_of(table, row)[column_of(table, "gain")].text, "faster");
}

TEST(ReportTables, IntensityStandsBesideTheRidgePoint) {
  const Table table = one(trial().data(), "intensity", {"sweep"});
  ASSERT_EQ(table.rows.size(), 2U);
  for (const char* batch : {"batch 32", "batch 64", "batch 128", "batch 256"}) {
    EXPECT_NEAR(value(table, {"desk"}, batch), 1.0 / (0.1 * 1.08), 1e-9);
  }
  EXPECT_NEAR(value(table, {"desk"}, "ridge point"), 5.0, 1e-9);
  EXPECT_NEAR(value(table, {"server"}, "ridge point"), 10.0, 1e-9);
}

TEST(ReportTables, EfficiencyIsTheShareOfPeakAndRoof) {
  const Table table = one(trial().data(), "efficiency", {"speed"});
  const std::vector<std::string> gpu = {"resnet18", "auto on cuda:0"};
  const double flops = 120e6 * 64.0 / 0.0095;
  EXPECT_NEAR(value(table, gpu, "achieved", "GFLOP/s"), flops * 1e-9, 1e-6);
  EXPECT_NEAR(value(table, gpu, "of the peak"), 100.0 * flops / 10e12, 1e-9);
  EXPECT_NEAR(value(table, {"mnist_cnn", "native"}, "of the roof"), 9.0048, 0.01);
}

TEST(ReportTables, BoundsAddUpToTheIteration) {
  const Table table = one(trial().data(), "bounds", {"speed"});
  for (const std::vector<Cell>& row : table.rows) {
    double sum = 0.0;
    for (const char* title : {"memory", "compute", "launch", "data", "unknown", "between steps"}) {
      sum += row[column_of(table, title)].value.value();
    }
    EXPECT_NEAR(sum, 100.0, 1e-9);
  }
  EXPECT_NEAR(value(table, {"mnist_cnn", "native"}, "between steps"), 5.0, 1e-6);
}

TEST(ReportTables, SpeedUpsAreOfTheSameWorkWithTheirVerdicts) {
  const Table table = one(trial().data(), "speedups", {"speed"});
  const std::map<std::string, double> expected = {
      {"mlp", 5.0}, {"mnist_cnn", 10.0}, {"resnet18", 50.0}};
  for (const auto& [model, times] : expected) {
    const std::vector<std::string> row = {model, "auto on cuda:0 (server)", "native (desk)"};
    EXPECT_NEAR(value(table, row, "speed-up"), times, 1e-6 * times);
    EXPECT_EQ(row_of(table, row).back().text, "faster");
    // Peers are what the engine is held against.
    EXPECT_NEAR(value(table, {model, "native (desk)", "torch-cpu (desk)"}, "speed-up"), 2.0, 1e-6);
  }
  EXPECT_TRUE(
      contains(notes_of(table, row_of(table, {"mlp", "auto on cuda:0 (server)",
                                              "native (desk)"})[column_of(table, "speed-up")]),
               "measured in different calls"));
}

TEST(ReportTables, UnlikeWorkIsNeverComparedAndDiffersInAColumn) {
  const TempStore store("unlike", [](Store& into) {
    testing::write_report_machines(into);
    ReportRun run;
    testing::write_report_bench(into, run);
    run.batch = 128;
    run.backend = "onednn";
    testing::write_report_bench(into, run);
  });
  EXPECT_TRUE(make(store.data(), "speedups").empty());
  const Table table = one(store.data(), "throughput");
  EXPECT_TRUE(has_column(table, "batch"));
  const TempStore precise("precision", [](Store& into) {
    testing::write_report_machines(into);
    ReportRun run;
    run.environment = "server";
    run.device = "cuda:0";
    run.backend = "auto";
    testing::write_report_bench(into, run);
    run.precision = "bf16";
    run.settings = "depth=3";
    testing::write_report_bench(into, run);
  });
  const Table mixed = one(precise.data(), "throughput");
  EXPECT_TRUE(has_column(mixed, "options"));
  EXPECT_EQ(mixed.rows[1][column_of(mixed, "executor")].text, "auto on cuda:0 in bf16");
  EXPECT_TRUE(make(precise.data(), "speedups").empty());
}

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
  const std::string cpu = "native (desk)", gpu = "auto on cuda:0 (server)";
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
    ReportTraining deep = base;
    deep.run.settings = "blocks=2";
    testing::write_report_training(into, deep);
    ReportTraining smooth = base;
    smooth.run.settings = "activation=tanh";
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
  EXPECT_EQ(titles, (std::vector<std::string>{"Sweep: batch", "Sweep: learning rate", "Sweep: optimizer",
                                              "Sweep: activation", "Sweep: blocks"}));
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

TEST(ReportFlags, RunsThatMustNotBeBelievedAreFlagged) {
  const TempStore store("flags", [](Store& into) {
    testing::write_report_machines(into);
    ReportRun few;
    few.part = "few";
    few.count = 4;
    testing::write_report_bench(into, few);
    ReportRun waiting;
    waiting.part = "waiting";
    waiting.loader_wait = 0.008;
    testing::write_report_bench(into, waiting);
    ReportRun above;
    above.part = "above";
    above.seconds = 0.0001;  // its FLOPs take 0.9 ms at the roof
    testing::write_report_bench(into, above);
    ReportRun sound;
    sound.part = "sound";
    testing::write_report_bench(into, sound);
    ReportTraining frozen;
    frozen.run.part = "frozen";
    frozen.accuracies = {0.5};
    frozen.seconds = {1.0};
    const RunId id = testing::write_report_training(into, frozen);
    EpochRecord epoch;
    epoch.epoch = 2;
    epoch.train_loss = 1.0;  // as in the first
    epoch.samples = 6000;
    epoch.seconds = 1.0;
    into.add(id, std::span<const EpochRecord>(&epoch, 1));
  });
  std::map<std::string, std::set<std::string>> names;
  for (const RunView& run : store.data().runs()) {
    for (const Finding& flag : flags_of(store.data(), run)) {
      names[run.part].insert(flag.name);
      EXPECT_FALSE(flag.evidence.empty());
      EXPECT_FALSE(flag.severity.empty());
    }
  }
  EXPECT_TRUE(names["few"].contains(std::string(kFewSamples)));
  EXPECT_TRUE(names["waiting"].contains(std::string(kLoaderBound)));
  EXPECT_TRUE(names["above"].contains(std::string(kAboveRoof)));
  EXPECT_TRUE(names["frozen"].contains(std::string(kFrozen)));
  EXPECT_TRUE(names["frozen"].contains(std::string(kSubstituted)));
  EXPECT_TRUE(names["sound"].empty());
  const Table table = one(store.data(), "throughput", {"waiting"});
  EXPECT_TRUE(
      contains(notes_of(table, table.rows[0][column_of(table, "throughput")]), "loader-bound"));
}

TEST(ReportFlags, ChanceIsWithinBinomialNoise) {
  EXPECT_TRUE(at_chance(0.10, 10, 10'000.0));
  EXPECT_TRUE(at_chance(0.1089, 10, 10'000.0));  // three standard errors are 0.9 points
  EXPECT_FALSE(at_chance(0.1091, 10, 10'000.0));
  EXPECT_TRUE(at_chance(0.12, 10, 1'000.0));
  EXPECT_TRUE(at_chance(0.005, 200, 10'000.0));
  EXPECT_FALSE(at_chance(0.02, 200, 10'000.0));
}

// Numbers of the tables, from the raw rows by SQL and arithmetics.
class RawRows {
 public:
  explicit RawRows(const std::filesystem::path& path) {
    if (sqlite3_open_v2(path.c_str(), &database_, SQLITE_OPEN_READONLY, nullptr) != SQLITE_OK) {
      fail("cannot open {}", path.string());
    }
  }
  ~RawRows() { sqlite3_close(database_); }
  RawRows(const RawRows&) = delete;
  RawRows& operator=(const RawRows&) = delete;

  [[nodiscard]] std::vector<double> column(const std::string& sql) const {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(database_, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
      fail("{}: {}", sqlite3_errmsg(database_), sql);
    }
    std::vector<double> values;
    while (sqlite3_step(statement) == SQLITE_ROW) {
      values.push_back(sqlite3_column_double(statement, 0));
    }
    sqlite3_finalize(statement);
    return values;
  }
  [[nodiscard]] double number(const std::string& sql) const { return column(sql).at(0); }
  [[nodiscard]] double median(const std::string& sql) const {
    std::vector<double> values = column(sql);
    std::sort(values.begin(), values.end());
    const std::size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values.at(half) : 0.5 * (values.at(half - 1) + values.at(half));
  }

 private:
  sqlite3* database_ = nullptr;
};

TEST(ReportTables, NumbersAreThoseOfTheRawRows) {
  const RawRows raw(trial().path());
  const Data& data = trial().data();
  const std::string native =
      "(SELECT id FROM runs WHERE model = 'mnist_cnn' AND backend = 'native' AND item LIKE "
      "'speed/%')";
  const std::string gpu =
      "(SELECT id FROM runs WHERE model = 'mnist_cnn' AND backend = 'auto' AND item LIKE "
      "'speed/%')";
  const std::string training =
      "(SELECT runs.id FROM runs JOIN run_numbers ON run = runs.id WHERE backend = 'auto' AND "
      "command = 'train' AND name = 'learning_rate' AND value = 0.1)";
  const auto wall = [](const std::string& run) {
    return "SELECT wall_seconds FROM samples WHERE kind = 'measured' AND run = " + run;
  };
  const std::vector<std::string> native_row = {"mnist_cnn", "native"},
                                 gpu_row = {"mnist_cnn", "auto on cuda:0"},
                                 training_row = {"server", "0.1"};
  const auto near = [](double shown, double computed) {
    EXPECT_NEAR(shown, computed, 1e-9 * std::abs(computed));
  };
  const Table throughput = one(data, "throughput", {"speed"});
  // 1: samples a second are the batch over the median of the iterations.
  near(value(throughput, native_row, "throughput"), 64.0 / raw.median(wall(native)));
  // 2: of a device that queues them, over that of the queued ones.
  near(value(throughput, gpu_row, "throughput"),
       64.0 /
           raw.median("SELECT device_seconds FROM samples WHERE kind = 'queued' AND run = " + gpu));
  // 3: FLOP/s.
  near(value(throughput, native_row, "achieved"),
       1e-9 *
           raw.number("SELECT value FROM run_numbers WHERE name = 'training_flops' AND run = " +
                      native) /
           raw.median(wall(native)));
  // 4, 5: mean and maximum of the iterations.
  const Table iterations = one(data, "iterations", {"speed"});
  near(value(iterations, native_row, "mean"),
       1e3 * raw.number("SELECT avg(wall_seconds) FROM samples WHERE kind = 'measured' AND run = " +
                        native));
  near(value(iterations, native_row, "max"),
       1e3 * raw.number("SELECT max(wall_seconds) FROM samples WHERE kind = 'measured' AND run = " +
                        native));
  // 6: speed-up.
  near(value(one(data, "speedups", {"speed"}),
             {"mnist_cnn", "auto on cuda:0 (server)", "native (desk)"}, "speed-up"),
       raw.median(wall(native)) / raw.median(wall(gpu)));
  // 7: the forward phase.
  near(value(one(data, "phases", {"speed"}), native_row, "forward"),
       1e3 * raw.median("SELECT forward_seconds FROM samples WHERE kind = 'split' AND run = " +
                        native));
  // 8, 9: epochs.
  const Table trainings = one(data, "training");
  near(value(trainings, training_row, "epoch"),
       raw.number("SELECT avg(seconds) FROM epochs WHERE epoch > 1 AND run = " + training));
  near(value(trainings, training_row, "max Acc@1"),
       100.0 * raw.number("SELECT max(test_accuracy) FROM epochs WHERE run = " + training));
  // 10: bytes.
  near(
      value(one(data, "memory", {"speed"}), gpu_row, "planned"),
      1e-6 * raw.number("SELECT sum(bytes) FROM memory WHERE source = 'planned' AND run = " + gpu));
  // 11: a sensor's mean over the whole run.
  near(
      value(make(data, "resources", {"speed"})[0], gpu_row, "GPU"),
      raw.number("SELECT avg(value) FROM readings WHERE sensor = 'gpu_utilisation_percent' AND run "
                 "= " +
                 gpu));
  // 12: matrix products of a profile.
  near(value(one(data, "operations", {"profile"}), {"matrix multiplication"}, "native (desk)"),
       1e3 * raw.number("SELECT sum(seconds) FROM steps WHERE ops = 'linear' AND run = (SELECT id "
                        "FROM runs WHERE command = 'profile' AND backend = 'native')"));
}

}  // namespace
}  // namespace ridgeline::report
