// The tables of reports: that they are whole, and known answers of work and speed.

#include "support/report_tables.h"

#include <gtest/gtest.h>

#include <cctype>
#include <map>
#include <set>

#include "study/study.h"

namespace ridgeline::report {
namespace {

using testing::column_of;
using testing::contains;
using testing::has_column;
using testing::make;
using testing::notes_of;
using testing::one;
using testing::ReportRun;
using testing::row_of;
using testing::TempStore;
using testing::trial;
using testing::value;

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

TEST(ReportTables, TheTrialsDefinitionIsAStudy) {
  const study::Study study = study::parse_study(testing::report_definition(), "trial");
  EXPECT_EQ(study.definition.hypotheses.size(), 2U);
  EXPECT_EQ(study.definition.exhibits.size(),
            study::table_names().size() + study::figure_names().size());
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

TEST(ReportTables, ComplexityIsThatOfOneSampleAsTheRunsTellIt) {
  const Table table = one(trial().data(), "complexity", {"speed"});
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_NEAR(value(table, {"mnist_cnn"}, "parameters", "M"), 0.1, 1e-12);
  EXPECT_NEAR(value(table, {"mnist_cnn"}, "forward", "MMAC"), 1.4 / 6.0, 1e-9);
  EXPECT_NEAR(value(table, {"mnist_cnn"}, "forward", "MFLOP"), 1.4 / 3.0, 1e-9);
  EXPECT_NEAR(value(table, {"mnist_cnn"}, "training", "MFLOP"), 1.4, 1e-9);
  EXPECT_NEAR(value(table, {"mnist_cnn"}, "training / forward"), 3.0, 1e-9);
  EXPECT_EQ(value(table, {"mnist_cnn"}, "batch"), 64.0);
  EXPECT_NEAR(value(table, {"mnist_cnn"}, "bytes", "MB"), 0.1 * 1.4 * 1.08, 1e-9);
  EXPECT_NEAR(value(table, {"mnist_cnn"}, "intensity"), 1.0 / (0.1 * 1.08), 1e-9);
  // By FLOPs.
  EXPECT_EQ(table.rows[0][0].text, "mlp");
  EXPECT_EQ(table.rows[2][0].text, "resnet18");
}

TEST(ReportTables, ComplexityIsOfTheRunThatShowsItBest) {
  const TempStore store("best", [](Store& into) {
    testing::write_report_machines(into);
    ReportRun run;
    run.batch = 128;
    testing::write_report_bench(into, run);
    run.batch = 64;  // the batch that most runs have
    for (const char* precision : {"bf16", "fp32"}) {
      run.precision = precision;
      testing::write_report_bench(into, run);
    }
    run.change = [](RunRecord& record) { record.executor.recompute = true; };
    testing::write_report_bench(into, run);
    run.change = nullptr;
    run.backend = "torch-cpu";
    testing::write_report_bench(into, run);
    testing::write_report_inference(into, run);
  });
  const Table table = one(store.data(), "complexity");
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(table.rows[0][column_of(table, "plan of")].text, "native");
  EXPECT_EQ(value(table, {"mnist_cnn"}, "batch"), 64.0);
}

TEST(ReportTables, NetworksThatTrainLessOfThemselvesHaveARowOfTheirOwn) {
  const TempStore store("frozen", [](Store& into) {
    testing::write_report_machines(into);
    ReportRun run;
    testing::write_report_bench(into, run);
    run.change = [](RunRecord& record) { record.work.freeze = {"features.*"}; };
    testing::write_report_bench(into, run);
  });
  const Table table = one(store.data(), "complexity");
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[1][column_of(table, "frozen")].text, "features.*");
}

TEST(ReportTables, ComplexityThatIsNotStoredIsMissingAndThatOfOldStoresIsMarked) {
  const TempStore store("old", [](Store& into) {
    testing::write_report_machines(into);
    ReportRun run;
    run.backend = "torch-cpu";
    testing::write_report_bench(into, run);
    run.model = "mlp";
    run.backend = "native";
    run.change = [](RunRecord& record) { record.notes["complexity"] = "computed afterwards"; };
    testing::write_report_bench(into, run);
  });
  const Table table = one(store.data(), "complexity");
  const Cell& missing = row_of(table, {"mnist_cnn"})[column_of(table, "parameters")];
  EXPECT_EQ(missing.text, "n/a");
  EXPECT_TRUE(contains(notes_of(table, missing), "not stored with any run of this network"));
  const Cell& marked = row_of(table, {"mlp"})[column_of(table, "parameters")];
  EXPECT_TRUE(contains(notes_of(table, marked), "computed afterwards"));
}

TEST(ReportTables, OddValuesOfOptionsAreWords) {
  const TempStore store("odd", [](Store& into) {
    testing::write_report_machines(into);
    ReportRun run;
    for (const char* hidden : {"10", "1e999", "0x10", "", "64,32"}) {
      run.model = "mlp";
      run.settings = {{"hidden", hidden}};
      testing::write_report_bench(into, run);
    }
  });
  const Table table = one(store.data(), "sweep");
  EXPECT_EQ(table.title, "Sweep: hidden");
  EXPECT_EQ(table.rows.size(), 4U);
  EXPECT_FALSE(table.rows[0][column_of(table, "hidden")].value);
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
  EXPECT_NEAR(value(table, row, "over the smallest"),
              100.0 * ((256.0 / 0.034) / (32.0 / 0.006) - 1.0), 1e-7);
  EXPECT_NEAR(value(table, row, "over the one before"),
              100.0 * ((256.0 / 0.034) / (128.0 / 0.018) - 1.0), 1e-7);
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
    const std::vector<std::string> row = {model, "auto on cuda:0, on server", "native, on desk"};
    EXPECT_NEAR(value(table, row, "speed-up"), times, 1e-6 * times);
    EXPECT_EQ(row_of(table, row).back().text, "faster");
    // The engine is compared with its peers.
    EXPECT_NEAR(value(table, {model, "native, on desk", "torch-cpu, on desk"}, "speed-up"), 2.0,
                1e-6);
  }
  EXPECT_TRUE(
      contains(notes_of(table, row_of(table, {"mlp", "auto on cuda:0, on server",
                                              "native, on desk"})[column_of(table, "speed-up")]),
               "measured in different calls"));
}

TEST(ReportTables, SpeedUpsAreAboveOne) {
  for (const std::vector<Cell>& row : one(trial().data(), "speedups").rows) {
    EXPECT_GE(row[row.size() - 2].value.value(), 1.0);
    EXPECT_NE(row.back().text, "slower");
  }
}

// Headings stand for what rows share; what a program reads has all columns.
TEST(ReportTables, RowsThatShareSomethingStandUnderAHeading) {
  Table table = one(trial().data(), "throughput", {"speed"});
  const Table before = table;
  report::group_rows(table);
  EXPECT_EQ(table.columns[column_of(table, "network")].shown, report::Shown::heading);
  EXPECT_EQ(table.columns[column_of(table, "throughput")].shown, report::Shown::column);
  EXPECT_EQ(table.rows.size(), before.rows.size());
  std::vector<std::string> headings;
  for (const auto& row : table.rows) {
    const std::string text = report::group_text(table, row);
    if (headings.empty() || headings.back() != text) headings.push_back(text);
  }
  EXPECT_EQ(std::set<std::string>(headings.begin(), headings.end()).size(), headings.size());
  EXPECT_LE(2 * headings.size(), table.rows.size());
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
    run.settings = {{"depth", "3"}};
    testing::write_report_bench(into, run);
  });
  const Table mixed = one(precise.data(), "throughput");
  EXPECT_TRUE(has_column(mixed, "options"));
  EXPECT_EQ(mixed.rows[1][column_of(mixed, "executor")].text, "auto on cuda:0 in bf16");
  EXPECT_TRUE(make(precise.data(), "speedups").empty());
}

}  // namespace
}  // namespace ridgeline::report
