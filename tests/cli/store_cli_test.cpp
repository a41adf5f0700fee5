// `ridgeline store`, run as a user would.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "store/identity_fields.h"
#include "support/data_files.h"
#include "support/ordinary_user.h"
#include "support/program.h"
#include "support/store_rows.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;
using namespace ridgeline::testing;
using Json = nlohmann::json;

class StoreCli : public FileTest {
 protected:
  [[nodiscard]] Outcome run(const std::string& arguments) const {
    return Child("store " + arguments, folder_).finish();
  }
  void write_store(const std::string& name = "ridgeline.db", int runs = 1) const {
    Store store(folder_ / name);
    for (int i = 0; i < runs; ++i) (void)write_example(store);
  }
  // Rows of a CSV file by the names of its header. The examples' one quoted cell is the label's.
  [[nodiscard]] std::vector<std::map<std::string, std::string>> csv(const std::string& name) const {
    std::ifstream file(folder_ / name);
    std::vector<std::map<std::string, std::string>> rows;
    std::vector<std::string> header;
    for (std::string line; std::getline(file, line);) {
      const std::vector<std::string> cells = cells_of(line);
      if (header.empty()) {
        header = cells;
        continue;
      }
      EXPECT_EQ(cells.size(), header.size()) << line;
      std::map<std::string, std::string>& row = rows.emplace_back();
      for (std::size_t i = 0; i < std::min(cells.size(), header.size()); ++i) {
        row[header[i]] = cells[i];
      }
      EXPECT_EQ(row.size(), header.size()) << "a name stands twice in " << name;
    }
    return rows;
  }

 private:
  static std::vector<std::string> cells_of(const std::string& line) {
    std::vector<std::string> cells(1);
    bool quoted = false;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (line[i] == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
        cells.back() += line[i++];
      } else if (line[i] == '"') {
        quoted = !quoted;
      } else if (line[i] == ',' && !quoted) {
        cells.emplace_back();
      } else {
        cells.back() += line[i];
      }
    }
    return cells;
  }
};

TEST_F(StoreCli, ListShowsRunsAndFiltersThem) {
  write_store("ridgeline.db", 2);
  const Outcome table = run("list");
  ASSERT_EQ(table.code, 0) << table.err;
  expect_contains(table.out, {"run", "started (UTC)", "mlp", "1x28x28", "2.00 ms", "16,000",
                              "complete", "a, \"quoted\" label"});
  const Outcome json = run("list --json --limit 1");
  ASSERT_EQ(json.code, 0) << json.err;
  const Json rows = Json::parse(json.out)["runs"];
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0]["run"], 2);
  EXPECT_EQ(rows[0]["model"], "mlp");
  EXPECT_EQ(rows[0]["median_ms"], 2.0);
  EXPECT_EQ(rows[0]["samples"], 10);
  EXPECT_EQ(rows[0]["status"], "complete");
  EXPECT_EQ(rows[0]["image"], "1x28x28");
  EXPECT_EQ(rows[0]["settings"]["hidden"], "64,32");
  EXPECT_EQ(rows[0]["disabled_passes"], Json({"fusion", "slices"}));
  EXPECT_EQ(run("list --model resnet18").out, "no runs\n");
  const auto count = [&](const std::string& arguments) {
    return Json::parse(run("list --json " + arguments).out)["runs"].size();
  };
  EXPECT_EQ(count("--where batch=32,hidden=64,32,deterministic=yes,status=complete"), 2U);
  EXPECT_EQ(count("--where batch=32 --backend native"), 2U);
  EXPECT_EQ(count("--where batch=64"), 0U);
  EXPECT_EQ(count("--where batch=32 --backend onednn"), 0U);
}

TEST_F(StoreCli, AnUnfinishedRunIsListedWithItsSamples) {
  {
    Store store(folder_ / "ridgeline.db");
    store.add(example_environment());
    store.add(store.begin(example_run()), example_samples(6));
  }
  const Outcome table = run("list");
  expect_contains(table.out, {"running: not finished yet, or the program was killed"});
  const Json row = Json::parse(run("list --json").out)["runs"][0];
  EXPECT_NEAR(row["median_ms"].get<double>(), 2.0035, 1e-9);
  EXPECT_NEAR(row["samples_per_second"].get<double>(), 32 / 0.0020035, 1e-3);
}

TEST_F(StoreCli, ShowTellsEverything) {
  write_store();
  const Outcome text = run("show last");
  ASSERT_EQ(text.code, 0) << text.err;
  // Fields of the identity under the labels of the registry.
  RunRecord wanted = example_run();
  for (const IdentityField& field : identity_fields()) {
    const std::string value = field.text(wanted);
    if (!value.empty())
      expect_contains(text.out, {fmt::format("\n{:<22}{}\n", field.label, value)});
  }
  expect_contains(text.out, {"ridgeline bench mlp", "feed, desk, box, Some CPU", "training_flops",
                             "1.000 GFLOP", "warmup", "measured", "native:dense", "parameter",
                             "4.0 KiB", "gpu_power_watts", "70.5 W", "loader-bound", "epoch"});
  const Outcome json = run("show 1 --json");
  const Json document = Json::parse(json.out);
  EXPECT_EQ(document["run"], 1);
  EXPECT_EQ(document["learning_rate"], 0.05);
  EXPECT_EQ(document["weights"], "");
  EXPECT_EQ(document["target_accuracy"], nullptr);
  EXPECT_EQ(document["loader"], true);
  EXPECT_EQ(document["samples"].size(), 12U);
  EXPECT_EQ(document["samples"][1]["device_seconds"], nullptr);
  EXPECT_EQ(document["summary"]["count"], 10);
  EXPECT_EQ(document["steps"].size(), 2U);
  EXPECT_EQ(document["telemetry"][0]["change"], 100.0);
  EXPECT_EQ(document["epochs"][0]["test_loss"], nullptr);
  EXPECT_EQ(document["findings"][0]["name"], "loader-bound");
  EXPECT_EQ(document["notes"]["clock"], "host");
}

TEST_F(StoreCli, ShowTakesConditionsAsCompareDoes) {
  {
    Store store(folder_ / "ridgeline.db");
    store.add(example_environment());
    RunRecord run = example_run();
    for (const char* label : {"before", "after", "before"}) {
      run.label = label;
      (void)store.begin(run);
    }
  }
  EXPECT_EQ(Json::parse(run("show label=before --json").out)["run"], 3);
  EXPECT_EQ(Json::parse(run("show label=after,backend=native --json").out)["run"], 2);
  EXPECT_EQ(run("show label=none").code, 2);
  EXPECT_EQ(run("show labell=none").code, 2);
}

TEST_F(StoreCli, ExportWritesOneRowForEachSample) {
  write_store("ridgeline.db", 2);
  const Outcome outcome = run("export --csv s.csv --runs 2,last");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "1 run written to s.csv\n");
  const auto rows = csv("s.csv");
  ASSERT_EQ(rows.size(), 12U);
  EXPECT_EQ(rows[2].at("run"), "2");
  EXPECT_EQ(rows[2].at("environment_label"), "desk");
  EXPECT_EQ(rows[2].at("label"), "a, \"quoted\" label");
  EXPECT_EQ(rows[2].at("settings"), R"({"activation":"relu","depth":"1","hidden":"64,32"})");
  EXPECT_EQ(rows[2].at("normalisation"), "[0.1307,0.3081]");
  EXPECT_EQ(rows[2].at("image"), "1x28x28");
  EXPECT_EQ(rows[2].at("loader"), "1");
  EXPECT_EQ(rows[2].at("target_accuracy"), "");
  for (const IdentityField& field : identity_fields()) {
    EXPECT_TRUE(rows[2].contains(std::string(field.name)) ||
                rows[2].contains(fmt::format("run_{}", field.name)))
        << field.name;
  }
  EXPECT_EQ(rows[2].at("run_kind"), "training");
  EXPECT_EQ(rows[2].at("kind"), "measured");
  EXPECT_EQ(rows[2].at("wall_seconds"), "0.002002");
  EXPECT_EQ(rows[3].at("device_seconds"), "");
  EXPECT_NEAR(std::stod(rows[2].at("samples_per_second")), 32 / 0.002002, 1e-6);
}

TEST_F(StoreCli, ExportWritesOneFileForEachTable) {
  write_store();
  const Outcome outcome = run("export --csv out/");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(csv("out/samples.csv").size(), 12U);
  EXPECT_EQ(csv("out/runs.csv").at(0).at("arguments"), "ridgeline bench mlp");
  EXPECT_EQ(csv("out/steps.csv").at(1).at("bytes_read"), "4000");
  EXPECT_EQ(csv("out/readings.csv").at(2).at("device"), "cuda:0");
  EXPECT_EQ(csv("out/readings.csv").at(2).at("run_device"), "cpu");
  EXPECT_EQ(csv("out/readings.csv").at(2).at("unit"), "W");
  EXPECT_EQ(csv("out/run_numbers.csv").at(1).at("unit"), "FLOP");
  EXPECT_EQ(csv("out/run_notes.csv").size(), 2U);
  EXPECT_EQ(csv("out/memory.csv").at(0).at("bytes"), "4096");
  EXPECT_EQ(csv("out/findings.csv").at(0).at("evidence"), "80% of the time, waiting");
  EXPECT_EQ(csv("out/epochs.csv").at(0).at("test_accuracy"), "0.9");
  EXPECT_EQ(csv("out/environments.csv").at(0).at("host"), "box");
  EXPECT_EQ(csv("out/ceilings.csv").at(0).at("environment"), "feed");
}

// Anything may stand in an identity: uuids and groups come from files of other programs.
TEST_F(StoreCli, EveryCellOfTheExportIsQuotedWhereItMustBe) {
  {
    Store store(folder_ / "ridgeline.db");
    EnvironmentRecord environment = example_environment();
    environment.key = environment.host = "a,\"b\"";
    store.add(environment);
    RunRecord run;
    visit_fields(run, [&](std::string_view, auto& field) {
      if constexpr (std::same_as<std::remove_cvref_t<decltype(field)>, std::string>) {
        field = "a,\"b\"";
      }
    });
    run.network = "";
    run.work.batch = 1;
    const RunId id = store.begin(run);
    store.add(id, example_samples(3));
    store.finish(id, RunStatus::complete, "c,\"d\"", {{"a,\"b\"", 1.0}}, {{"a,\"b\"", "c,d"}});
  }
  ASSERT_EQ(run("export --csv out/").code, 0);
  for (const char* file : {"samples", "runs", "run_numbers", "run_notes"}) {
    const auto rows = csv(fmt::format("out/{}.csv", file));  // counts the cells
    ASSERT_FALSE(rows.empty()) << file;
    for (const char* name : {"uuid", "environment", "group", "model", "backend", "host"}) {
      EXPECT_EQ(rows[0].at(name), "a,\"b\"") << file << ' ' << name;
    }
  }
  EXPECT_EQ(csv("out/runs.csv").at(0).at("item"), "a,\"b\"");
}

TEST_F(StoreCli, ExportWritesWhatGoogleBenchmarkWrites) {
  write_store("ridgeline.db", 2);
  const Outcome outcome = run("export --google-benchmark g.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::ifstream file(folder_ / "g.json");
  const Json document = Json::parse(file);
  EXPECT_EQ(document["context"]["num_cpus"], 2);
  EXPECT_EQ(document["context"]["host_name"], "box");
  const Json& list = document["benchmarks"];
  ASSERT_EQ(list.size(), 26U);  // 10 measured samples and 3 aggregates of two runs
  const Json& first = list[0];
  EXPECT_EQ(first["run_type"], "iteration");
  EXPECT_EQ(first["iterations"], 1);
  EXPECT_EQ(first["repetitions"], 10);
  EXPECT_EQ(first["time_unit"], "ms");
  EXPECT_NEAR(first["real_time"].get<double>(), 2.002, 1e-9);
  EXPECT_NEAR(first["cpu_time"].get<double>(), 1.0, 1e-9);
  EXPECT_EQ(list[11]["aggregate_name"], "median");
  EXPECT_NE(list[0]["name"], list[13]["name"]);
}

TEST_F(StoreCli, ImportMergesAndSaysWhatWasNew) {
  write_store();
  write_store("other.db", 2);
  const Outcome first = run("import other.db");
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_EQ(first.out, "other.db: 2 runs added to ridgeline.db\n");
  const Outcome again = run("import other.db --json");
  const Json document = Json::parse(again.out);
  EXPECT_EQ(document["files"][0]["new_runs"], 0);
  EXPECT_EQ(document["runs"], 3);
}

TEST_F(StoreCli, WhatCannotBeImportedLeavesNoNewStore) {
  (void)write("x.csv", std::string("a,b\n1,2\n"));
  (void)write("broken.json", std::string("{ nothing"));
  (void)write("other.json", std::string("{\"a\": 1}"));
  write_store("good.db");
  for (const auto& [file, part] : std::vector<std::pair<std::string, std::string>>{
           {"x.csv", "neither a store (SQLite, such as ridgeline.db) nor results in JSON"},
           {"broken.json", "is not JSON"},
           {"other.json", "no results to import"},
           {"nowhere.db", "there is no such file"},
           {".", "is a folder, not a file to import"}}) {
    const Outcome outcome = run("import good.db " + file + " --store new.db");
    EXPECT_EQ(outcome.code, 2) << file;
    expect_contains(outcome.err, {part});
    EXPECT_FALSE(fs::exists(folder_ / "new.db")) << file;
  }
}

TEST_F(StoreCli, WhatCannotBeReachedIsNoMissingStore) {
  fs::create_symlink("loop", folder_ / "loop");
  const Outcome outcome = run("list --store loop/s.db");
  EXPECT_EQ(outcome.code, 2);
  expect_contains(outcome.err, {"loop/s.db: cannot be read"});
}

TEST_F(StoreCli, AReadOnlyStoreAndAnUnreadableFolderEndWithExitCodeTwo) {
  write_store("s.db");
  fs::create_directories(folder_ / "closed");
  fs::permissions(folder_ / "s.db", fs::perms(0444));
  fs::permissions(folder_ / "closed", fs::perms(0));
  fs::permissions(folder_, fs::perms(0555));
  Outcome deleted, trained, listed, data;
  {
    const OrdinaryUser user;
    deleted = run("delete 1 --store s.db");
    trained = Child("train mlp --data synthetic:1x8x8:4:64 --store s.db", folder_).finish();
    listed = run("list --store closed/s.db");
    data = Child("train mlp --store none --data closed/photos", folder_).finish();
  }
  fs::permissions(folder_, fs::perms::owner_all);
  if (deleted.code == 127) GTEST_SKIP() << "other users cannot run the program here";
  for (const Outcome& outcome : {deleted, trained}) {
    EXPECT_EQ(outcome.code, 2);
    expect_contains(outcome.err, {"s.db", "read-only"});
  }
  for (const Outcome& outcome : {listed, data}) {
    EXPECT_EQ(outcome.code, 2);
    expect_contains(outcome.err, {"closed/", "cannot be read: Permission denied"});
  }
}

TEST_F(StoreCli, DeleteRemovesTheRunsNamed) {
  write_store("ridgeline.db", 3);
  const Outcome outcome = run("delete 1 3");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "2 runs deleted\n");
  const Json rows = Json::parse(run("list --json").out)["runs"];
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0]["run"], 2);
  // One wrong name, and nothing goes.
  EXPECT_EQ(run("delete 2 77").code, 2);
  EXPECT_EQ(Json::parse(run("list --json").out)["runs"].size(), 1U);
}

TEST_F(StoreCli, ColumnsComeFromTheRegistry) {
  expect_contains(run("columns").out, {"### samples", "`wall_seconds`", "`gpu_power_watts`"});
  const Json document = Json::parse(run("columns --json").out);
  EXPECT_EQ(document["tables"].size(), 16U);
  EXPECT_EQ(document["tables"][0]["columns"][0]["name"], "key");
}

TEST_F(StoreCli, WrongUseIsToldWithExitCodeTwo) {
  const auto refused = [&](const std::string& arguments, const std::vector<std::string>& parts) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_EQ(outcome.out, "") << arguments;
    expect_contains(outcome.err, parts);
  };
  refused("list", {"ridgeline.db", "does not exist"});
  refused("delete 1", {"does not exist"});
  EXPECT_FALSE(fs::exists(folder_ / "ridgeline.db"));
  write_store();
  refused("show", {"RUN"});
  refused("show 9", {"no run '9'", "store list"});
  refused("export", {"--csv FILE.csv"});
  refused("export --csv x.csv --model none", {"no run"});
  refused("export --csv no/where.csv", {"cannot be written"});
  refused("import none.db", {"none.db", "no such file"});
  refused("list --limit 0", {"--limit 0"});
  refused("list --where bach=1", {"bach", "did you mean 'batch'"});
  refused("list --where batch", {"NAME=VALUE"});
  refused("list --modle mlp", {"--modle", "--model"});
  (void)write("broken.db", std::string("SQLite format 3") + '\0' + "and then nothing");
  refused("list --store broken.db", {"broken.db"});
  refused("import broken.db", {"broken.db"});
  expect_contains(run("").out, {"list", "show", "import", "export", "delete"});
  for (const char* name : {"list", "show", "import", "export", "delete", "columns"}) {
    const Outcome help = run(std::string(name) + " --help");
    EXPECT_EQ(help.code, 0);
    expect_contains(help.out, {"--store", "--json", "Example"});
  }
}

}  // namespace
}  // namespace ridgeline
