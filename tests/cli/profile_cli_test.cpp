// `ridgeline profile` as a user runs it: tables that add up, what is stored, what is refused.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "store/columns.h"
#include "store/store.h"
#include "support/program.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::Child;
using testing::Outcome;

const std::string kSmallProfile = " --image 1x12x12 --batch 4 --steps 2 --threads 2 --no-roof ";

class ProfileCli : public testing::ProgramTest {};

double sum_of(const Json& rows) {
  double sum = 0.0;
  for (const Json& row : rows) sum += row.at("ms").get<double>();
  return sum;
}

TEST_F(ProfileCli, RowsAddUpToTheStepOnEveryBackend) {
  for (const char* backend : {"reference", "native", "onednn"}) {
    for (const char* model : {"mlp", "mnist_cnn"}) {
      SCOPED_TRACE(std::string(backend) + " " + model);
      const Outcome outcome = run("profile " + std::string(model) + kSmallProfile + "--backend " +
                                  backend + " --json --no-store");
      ASSERT_EQ(outcome.code, 0) << outcome.err;
      const Json document = Json::parse(outcome.out);
      const double step_ms = document.at("step_ms");
      EXPECT_GT(step_ms, 0.0);
      EXPECT_NEAR(sum_of(document.at("rows")), step_ms, 1e-9 * step_ms);
      EXPECT_NEAR(sum_of(document.at("table")), step_ms, 1e-9 * step_ms);
      double parts = 0.0;
      for (const auto& [name, ms] : document.at("breakdown").items()) parts += ms.get<double>();
      EXPECT_NEAR(parts, step_ms, 1e-9 * step_ms);
      for (const char* key : {"layer", "op", "phase", "kernel", "ms", "flops", "bytes", "bound"}) {
        EXPECT_TRUE(document.at("rows").at(0).contains(key)) << key;
      }
      EXPECT_EQ(document.at("iterations"), 2);
      EXPECT_TRUE(document.at("run").is_null());
    }
  }
}

TEST_F(ProfileCli, EveryGroupingGivesATableWithASum) {
  for (const char* by : {"op", "layer", "phase", "kernel", "step", "study2"}) {
    const Outcome outcome =
        run("profile mnist_cnn" + kSmallProfile + "--no-store --top 2 --csv rows.csv --by " + by);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_NE(outcome.out.find("profiling adds"), std::string::npos);
    EXPECT_NE(outcome.out.find("100.0%"), std::string::npos) << outcome.out;
    std::ifstream file(folder_ / "rows.csv");
    std::string header, line;
    ASSERT_TRUE(std::getline(file, header));
    const auto columns = std::count(header.begin(), header.end(), ',');
    std::int64_t rows = 0;
    while (std::getline(file, line)) {
      EXPECT_EQ(std::count(line.begin(), line.end(), ','), columns) << line;
      ++rows;
    }
    EXPECT_GE(rows, 3) << by;
  }
}

TEST_F(ProfileCli, IsStoredAsARunWithRegisteredNames) {
  const Outcome outcome = run("profile mlp" + kSmallProfile + "--label mine");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Store store = Store::open_existing(folder_ / "ridgeline.db");
  const RunRecord kept = store.run("last");
  EXPECT_EQ(kept.command, "profile");
  EXPECT_EQ(kept.status, RunStatus::complete);
  EXPECT_EQ(kept.label, "mine");
  EXPECT_FALSE(store.steps(kept.id).empty());
  EXPECT_EQ(store.sample_count(kept.id, SampleKind::measured), 4);
  for (const auto& [name, value] : kept.numbers) {
    EXPECT_NE(find_name(number_names(), name), nullptr) << name;
  }
  for (const auto& [name, value] : kept.notes) {
    EXPECT_NE(find_name(note_names(), name), nullptr) << name;
  }
  double parts = 0.0;
  for (const char* part : {"kernel", "copy", "runtime", "data", "cpu", "idle"}) {
    parts += kept.numbers.at("breakdown_" + std::string(part) + "_seconds");
  }
  EXPECT_NEAR(parts, kept.numbers.at("profiled_seconds"), 1e-12);
}

TEST_F(ProfileCli, ALoaderAndInferenceCanBeProfiled) {
  const Outcome loaded = run("profile mlp" + kSmallProfile + "--no-store --loader --json");
  ASSERT_EQ(loaded.code, 0) << loaded.err;
  EXPECT_GT(Json::parse(loaded.out).at("breakdown").at("copy_ms").get<double>(), 0.0);
  const Outcome inference =
      run("profile mnist_cnn" + kSmallProfile + "--no-store --inference --json");
  ASSERT_EQ(inference.code, 0) << inference.err;
  const Json document = Json::parse(inference.out);
  EXPECT_EQ(document.at("kind"), "inference");
  EXPECT_EQ(document.at("batch"), 4);
}

TEST_F(ProfileCli, BadInputIsRefusedBeforeAnyWork) {
  const auto refused = [&](const std::string& arguments, const std::string& word) {
    const Outcome outcome = run("profile " + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments << outcome.err;
    EXPECT_NE(outcome.err.find(word), std::string::npos) << outcome.err;
    EXPECT_TRUE(outcome.out.empty()) << outcome.out;
  };
  refused("mlp --steps 0", "--steps 0: must be between 1");
  refused("mlp --steps -3", "--steps -3");
  refused("mlp --top 0", "--top 0");
  refused("mlp --by lines", "--by: unknown value 'lines'");
  refused("mlp --csv nowhere/rows.csv", "nowhere/rows.csv: cannot be written");
  refused("mlp --trace nowhere/trace.json.gz", "nowhere/trace.json.gz: cannot be written");
  refused("mlp --trace .", ".: is a folder");
  refused("mlp --against last", "ridgeline.db");
  refused("mlp --store nowhere/at/all.db", "nowhere/at/all.db");
  refused("mlp --backend torch-cpu", "only backends");
  refused("mlp --backend native,onednn", "one model, backend");
  refused("mlp --telemetry -1", "--telemetry -1");
  refused("", "no model given");
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(ProfileCli, ATraceHasEveryStepOfEveryIteration) {
  const Outcome outcome =
      run("profile mlp" + kSmallProfile + "--no-store --json --trace trace.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json document = Json::parse(outcome.out);
  EXPECT_EQ(document.at("trace"), "trace.json");
  std::ifstream file(folder_ / "trace.json");
  const Json trace = Json::parse(file);
  // By layer and ops: parts of threads carry no layer.
  std::map<std::pair<std::string, std::string>, std::int64_t> counts, wanted;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.value("ph", "") != "X" || !event.contains("args")) continue;
    const Json& args = event.at("args");
    if (!args.contains("layer")) continue;
    ++counts[{args.at("layer").get<std::string>(), event.at("name").get<std::string>()}];
  }
  for (const Json& row : document.at("rows")) {
    if (row.at("layer") == "") continue;
    wanted[{row.at("layer").get<std::string>(), row.at("op").get<std::string>()}] += 2;
  }
  EXPECT_EQ(counts, wanted);
}

TEST_F(ProfileCli, AgainstAStoredRunTheRowsAddUpToTheDifference) {
  ASSERT_EQ(run("profile mlp" + kSmallProfile + "--backend native").code, 0);
  const Outcome outcome =
      run("profile mlp" + kSmallProfile + "--backend onednn --against backend=native --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_FALSE(Json::parse(outcome.out).at("against").is_null());
  const Outcome text =
      run("profile mlp" + kSmallProfile + "--against last --memory --no-store --by phase");
  EXPECT_EQ(text.code, 2);
  EXPECT_NE(text.err.find("op, layer or step"), std::string::npos) << text.err;
}

TEST_F(ProfileCli, CountersThatCannotBeHadAreNamed) {
  const Outcome outcome = run("profile mlp" + kSmallProfile + "--no-store --counters --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json document = Json::parse(outcome.out);
  bool told = document.at("rows").at(0).contains("instructions");
  for (const Json& missing : document.at("missing")) {
    told = told || missing.at("what") == "hardware counters";
  }
  EXPECT_TRUE(told);
}

}  // namespace
}  // namespace ridgeline
