// `ridgeline bench` as a user runs it: matrices, what is left out, what stays in the store when all
// goes well, when it is interrupted, killed, or when two write at once.

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>

#include "base/text_file.h"
#include "store/columns.h"
#include "store/store.h"
#include "support/program.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::Child;
using testing::Outcome;
using testing::program;

const std::string kSmall = " --image 1x8x8 --batch 4 --warmup 1 --iterations 12 --threads 1 ";

class BenchCli : public testing::ProgramTest {
 protected:
  [[nodiscard]] Store store() const { return Store::open_existing(folder_ / "ridgeline.db"); }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  // Waits until the store has so many samples of its first run.
  [[nodiscard]] std::size_t wait_for_samples(std::size_t wanted) const {
    for (int i = 0; i < 3000; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (!fs::exists(folder_ / "ridgeline.db")) continue;
      try {
        const Store opened = store();
        const std::vector<RunRecord> runs = opened.runs();
        if (runs.empty()) continue;
        const std::size_t found = opened.samples(runs[0].id).size();
        if (found >= wanted) return found;
      } catch (const std::exception&) {
        // Not yet a store: it is just being made.
      }
    }
    return 0;
  }
};

std::size_t measured(const std::vector<Sample>& samples) {
  std::size_t count = 0;
  for (const Sample& sample : samples) count += sample.kind == SampleKind::measured ? 1 : 0;
  return count;
}

TEST_F(BenchCli, MeasuresTheProductWithTheSameWorkSideBySide) {
  const Outcome outcome =
      run("bench mlp,mnist_cnn --backend native,reference --batch 2,4 --warmup 0 --iterations 1 "
          "--no-store --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::vector<std::string> rows;
  const Json document = Json::parse(outcome.out);
  for (const Json& row : document.at("results")) {
    rows.push_back(row.at("model").get<std::string>() + ' ' + row.at("batch").dump() + ' ' +
                   row.at("backend").get<std::string>());
  }
  EXPECT_EQ(rows, (std::vector<std::string>{"mlp 2 native", "mlp 2 reference", "mlp 4 native",
                                            "mlp 4 reference", "mnist_cnn 2 native",
                                            "mnist_cnn 2 reference", "mnist_cnn 4 native",
                                            "mnist_cnn 4 reference"}));
}

TEST_F(BenchCli, DevicesFollowTheBackendsUnlessTold) {
  const Outcome outcome = run("bench mlp --backend native,cuda --no-store --json" + kSmall);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json document = Json::parse(outcome.out);
  EXPECT_EQ(document.at("results")[0].at("device"), "cpu");
  // Measured where there is such a device, listed where there is none.
  const Json& second =
      document.at("results").size() > 1 ? document.at("results")[1] : document.at("left_out")[0];
  EXPECT_EQ(second.at("backend"), "cuda");
  EXPECT_EQ(second.at("device"), "cuda:0");
}

TEST_F(BenchCli, RefusesUnknownNamesAndLeavesNothing) {
  const auto refused = [&](const std::string& arguments, const std::string& part) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments << '\n' << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
    EXPECT_EQ(files(), 0U) << arguments;
  };
  refused("bench mlp,resnet81", "did you mean 'resnet18'");
  refused("bench mlp --backend native,torch-gpu", "torch-");
  refused("bench mlp --backend native,native", "named twice");
  refused("bench mlp --batch 4,x", "--batch x");
  refused("bench mlp --batch 4,,8", "empty");
  refused("bench mlp --precision fp32,fp8", "unknown value 'fp8'");
  refused("bench mlp --optimizer sgd,adagrad", "unknown value 'adagrad'");
  refused("bench mlp --samples 100", "--loader");
  refused("bench mlp --max-seconds 0", "--max-seconds 0");
  refused("bench mlp --processes 0", "--processes 0");
  refused("bench mlp --telemetry -1", "--telemetry -1");
  refused("bench mlp --precision-target 0", "--precision-target 0");
  refused("bench mlp --inference --loader", "--loader");
  refused("bench mlp --frobnicate", "--frobnicate");
  // Nothing of it can be measured: all are listed with their reasons.
  refused("bench mlp --precision tf32,fp16 --device cpu", "none of the 2 configurations");
}

TEST_F(BenchCli, ListsImpossibleConfigurationsAndMeasuresTheOthers) {
  const Outcome outcome =
      run("bench mlp --backend native,reference --precision fp32,fp16 --optimizer sgd,adam "
          "--momentum 0.9 --json" +
          kSmall);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json document = Json::parse(outcome.out);
  ASSERT_EQ(document.at("results").size(), 2U);
  EXPECT_EQ(document.at("results")[0].at("backend"), "native");
  EXPECT_EQ(document.at("results")[1].at("backend"), "reference");
  ASSERT_EQ(document.at("left_out").size(), 6U);
  for (const Json& each : document.at("left_out")) {
    const auto reason = each.at("reason").get<std::string>();
    const bool known = reason.find("fp32 and bf16 only") != std::string::npos ||
                       reason.find("--momentum") != std::string::npos;
    EXPECT_TRUE(known) << reason;
  }
}

TEST_F(BenchCli, StoresEverythingUnderRegisteredNames) {
  const Outcome outcome =
      run("bench mlp,mnist_cnn --backend native,reference --batch 4 --warmup 1 --iterations 12 "
          "--threads 1 --label trial --env-label bench-machine --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json document = Json::parse(outcome.out);
  ASSERT_EQ(document.at("results").size(), 4U);
  const Store opened = store();
  const std::vector<RunRecord> runs = opened.runs();
  ASSERT_EQ(runs.size(), 4U);
  std::set<std::string> groups;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunRecord& run = runs[i];
    EXPECT_EQ(run.uuid, document.at("results")[i].at("run"));
    EXPECT_EQ(run.status, RunStatus::complete);
    EXPECT_EQ(run.command, "bench");
    EXPECT_EQ(run.label, "trial");
    EXPECT_NE(run.arguments.find("mlp,mnist_cnn"), std::string::npos);
    EXPECT_EQ(run.work.batch, 4);
    EXPECT_EQ(run.executor.threads, 1);
    groups.insert(run.group);
    for (const auto& [name, value] : run.numbers) {
      EXPECT_NE(find_name(number_names(), name), nullptr) << name << " is not registered";
    }
    for (const auto& [name, value] : run.notes) {
      EXPECT_NE(find_name(note_names(), name), nullptr) << name << " is not registered";
    }
    EXPECT_NEAR(run.numbers.at("median_seconds") * 1e3,
                document.at("results")[i].at("median_ms").get<double>(), 1e-9);
    const std::vector<Sample> samples = opened.samples(run.id);
    EXPECT_EQ(measured(samples), 12U);
    EXPECT_FALSE(opened.steps(run.id).empty());
  }
  EXPECT_EQ(groups.size(), 1U);
  ASSERT_EQ(opened.environments().size(), 1U);
  EXPECT_EQ(opened.environments()[0].label, "bench-machine");
}

TEST_F(BenchCli, WritesNoStoreWhereNoneIsWanted) {
  ASSERT_EQ(run("bench mlp --no-store" + kSmall).code, 0);
  EXPECT_EQ(files(), 0U);
}

TEST_F(BenchCli, PhasesAreToldApartWhereThePlanHasThem) {
  const Outcome outcome =
      run("bench mnist_cnn --backend reference --no-store --json --batch 2 "
          "--warmup 1 --iterations 3");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json result = Json::parse(outcome.out).at("results")[0];
  for (const char* key : {"forward_ms", "backward_ms", "optimizer_ms"}) {
    EXPECT_GT(result.at(key).get<double>(), 0.0) << key;
  }
  const Outcome without =
      run("bench mnist_cnn --backend reference --no-store --json --batch 2 "
          "--warmup 1 --iterations 3 --no-split");
  EXPECT_TRUE(Json::parse(without.out).at("results")[0].at("forward_ms").is_null());
}

TEST_F(BenchCli, TheLoaderBringsABatchToEveryIteration) {
  const Outcome outcome = run("bench mlp --loader --samples 40,80 --json" + kSmall);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json results = Json::parse(outcome.out).at("results");
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].at("data_samples"), 40);
  EXPECT_EQ(results[1].at("data_samples"), 80);
  EXPECT_TRUE(results[0].at("data_wait_ms").is_number());
  EXPECT_TRUE(results[0].at("upload_ms").is_number());
  EXPECT_EQ(results[0].at("loader"), true);
  const Outcome full =
      run("bench mlp --batch full --samples 24 --image 1x8x8 --json --warmup 1 "
          "--iterations 2");
  ASSERT_EQ(full.code, 0) << full.err;
  EXPECT_EQ(Json::parse(full.out).at("results")[0].at("batch"), 24);
  EXPECT_EQ(Json::parse(full.out).at("results")[0].at("full_batch"), true);
}

TEST_F(BenchCli, InferenceTellsLatencyAndThroughput) {
  const Outcome outcome = run("bench mlp --inference --json" + kSmall);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json results = Json::parse(outcome.out).at("results");
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].at("batch"), 1);
  EXPECT_EQ(results[0].at("kind"), "inference");
  EXPECT_LE(results[0].at("p50_ms"), results[0].at("p90_ms"));
  EXPECT_LE(results[0].at("p90_ms"), results[0].at("p99_ms"));
  EXPECT_TRUE(results[0].at("training_flops").is_null());
  const RunRecord run = store().runs()[0];
  EXPECT_EQ(run.work.kind, "inference");
  EXPECT_TRUE(run.numbers.contains("latency_p99_seconds"));
}

TEST_F(BenchCli, SeveralProcessesWriteOneRun) {
  const Outcome outcome = run("bench mlp --backend native,reference --processes 2 --json" + kSmall);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json results = Json::parse(outcome.out).at("results");
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].at("samples"), 24);
  const Store opened = store();
  const std::vector<RunRecord> runs = opened.runs();
  ASSERT_EQ(runs.size(), 2U);
  for (const RunRecord& run : runs) {
    EXPECT_EQ(run.status, RunStatus::complete);
    std::map<std::int64_t, std::size_t> processes;
    for (const Sample& sample : opened.samples(run.id)) {
      if (sample.kind == SampleKind::measured) ++processes[sample.process];
    }
    EXPECT_EQ(processes, (std::map<std::int64_t, std::size_t>{{0, 12}, {1, 12}}));
    EXPECT_FALSE(opened.steps(run.id).empty());
  }
}

TEST_F(BenchCli, InterruptedRunsSaySo) {
  Child child("bench mlp --batch 8 --warmup 1 --iterations 100000000 --json", folder_);
  ASSERT_GT(wait_for_samples(200), 0U);
  child.send(SIGINT);
  const Outcome outcome = child.finish();
  EXPECT_EQ(outcome.code, 128 + SIGINT) << outcome.err;
  const Json result = Json::parse(outcome.out).at("results")[0];
  EXPECT_EQ(result.at("status"), "interrupted");
  const Store opened = store();
  EXPECT_EQ(opened.runs()[0].status, RunStatus::interrupted);
  EXPECT_EQ(measured(opened.samples(opened.runs()[0].id)), result.at("samples").get<std::size_t>());
}

TEST_F(BenchCli, InterruptionReachesTheOtherProcesses) {
  // Programs that a script starts in the background begin with SIGINT ignored.
  for (void (*const before)(int) : {SIG_DFL, SIG_IGN}) {
    SCOPED_TRACE(before == SIG_IGN ? "ignored" : "default");
    fs::remove(folder_ / "ridgeline.db");
    void (*const former)(int) = std::signal(SIGINT, before);
    Child child("bench mlp --batch 8 --warmup 1 --iterations 100000000 --processes 3 --json",
                folder_);
    std::signal(SIGINT, former);
    ASSERT_GT(wait_for_samples(200), 0U);
    child.send(SIGINT);
    const Outcome outcome = child.finish();
    EXPECT_EQ(outcome.code, 128 + SIGINT) << outcome.err;
    EXPECT_GT(Json::parse(outcome.out).at("results")[0].at("samples").get<int>(), 0);
    EXPECT_EQ(store().runs()[0].status, RunStatus::interrupted);
  }
}

TEST_F(BenchCli, AKilledBenchLeavesAllFinishedTurns) {
  Child child("bench mlp --batch 8 --warmup 1 --iterations 100000000", folder_);
  const std::size_t seen = wait_for_samples(500);
  ASSERT_GT(seen, 0U);
  child.send(SIGKILL);
  EXPECT_EQ(child.finish().code, 128 + SIGKILL);
  const Store opened = store();
  const RunRecord run = opened.runs().at(0);
  EXPECT_EQ(run.status, RunStatus::running);
  const std::vector<Sample> samples = opened.samples(run.id);
  EXPECT_GE(samples.size(), seen);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(samples[i].iteration, static_cast<std::int64_t>(i)) << "a gap";
  }
}

TEST_F(BenchCli, TwoAtOnceOnOneStoreLoseNothing) {
  Child one("bench mlp --label one --backend native,reference" + kSmall, folder_);
  Child two("bench mlp --label two --backend native,reference" + kSmall, folder_);
  const Outcome first = one.finish(), second = two.finish();
  ASSERT_EQ(first.code, 0) << first.err;
  ASSERT_EQ(second.code, 0) << second.err;
  const Store opened = store();
  for (const char* label : {"one", "two"}) {
    const std::vector<RunRecord> runs = opened.runs({{"label", label}});
    ASSERT_EQ(runs.size(), 2U) << label;
    for (const RunRecord& run : runs) EXPECT_EQ(measured(opened.samples(run.id)), 12U);
  }
}

TEST_F(BenchCli, ADamagedStoreIsRefusedBeforeMeasuring) {
  std::ofstream(folder_ / "ridgeline.db") << "this is no database, whatever its name says";
  const Outcome outcome = run("bench mlp --iterations 100000000");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("ridgeline.db"), std::string::npos) << outcome.err;
}

TEST_F(BenchCli, AFullDiskDoesNotCostTheResults) {
  // No file may grow beyond what the empty store takes and a little.
  ASSERT_EQ(run("bench mlp" + kSmall).code, 0);
  const auto blocks = fs::file_size(folder_ / "ridgeline.db") / 1024 + 8;
  const std::string command = "cd '" + folder_.string() + "' && trap '' XFSZ && ulimit -f " +
                              std::to_string(blocks) + " && '" + program() +
                              "' bench mlp --image 1x8x8 --batch 4 --warmup 1 --iterations 30000 " +
                              "--threads 1 --json > results 2> messages";
  const int status = std::system(("bash -c \"" + command + "\"").c_str());
  const std::string text = read_text(folder_ / "results");
  const std::string said = read_text(folder_ / "messages");
  EXPECT_EQ(WEXITSTATUS(status), 1) << said;
  EXPECT_NE(said.find("cannot write to the store"), std::string::npos) << said;
  ASSERT_FALSE(text.empty()) << said;
  EXPECT_EQ(Json::parse(text).at("results")[0].at("samples"), 30000);
}

TEST_F(BenchCli, TrainingWritesItsEpochs) {
  const Outcome outcome = run(
      "train mlp --backend reference --threads 1 --data synthetic:1x8x8:4:240 --batch 32 --epochs "
      "3 --label lesson");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Store opened = store();
  const RunRecord run = opened.runs().at(0);
  EXPECT_EQ(run.command, "train");
  EXPECT_EQ(run.label, "lesson");
  EXPECT_EQ(run.status, RunStatus::complete);
  EXPECT_EQ(run.work.model, "mlp");
  const std::vector<EpochRecord> epochs = opened.epochs(run.id);
  ASSERT_EQ(epochs.size(), 3U);
  EXPECT_EQ(epochs[2].epoch, 3);
  EXPECT_TRUE(epochs[2].test_accuracy.has_value());
  for (const auto& [name, value] : run.numbers) {
    EXPECT_NE(find_name(number_names(), name), nullptr) << name << " is not registered";
  }
}

bool has_torch() {
  const char* python = std::getenv("RIDGELINE_PYTHON");
  const std::string command = std::string(python != nullptr ? python : "/usr/bin/python3") +
                              " -c 'import torch' 2>/dev/null";
  return std::system(command.c_str()) == 0;
}

TEST_F(BenchCli, PyTorchStandsBesideOurBackendsWithParityShown) {
  if (!has_torch()) GTEST_SKIP() << "no Python with PyTorch here";
  const Outcome outcome =
      run("bench mnist_cnn --backend native,torch-cpu --batch 8 --warmup 2 "
          "--iterations 12 --threads 1 --json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json results = Json::parse(outcome.out).at("results");
  ASSERT_EQ(results.size(), 2U) << outcome.out;
  EXPECT_EQ(results[1].at("backend"), "torch-cpu");
  EXPECT_EQ(results[1].at("samples"), 12);
  EXPECT_NE(results[1].at("notes").at("parity").get<std::string>(), "");
  for (const Json& finding : results[1].at("findings")) {
    EXPECT_NE(finding.at("severity"), "error") << finding;
  }
  const Store opened = store();
  const std::vector<RunRecord> runs = opened.runs();
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].work, runs[1].work) << "or they could not be compared";
}

TEST_F(BenchCli, APeerWithoutPythonIsLeftOutAndTheRestGoesOn) {
  setenv("RIDGELINE_PYTHON", "/nonexistent/python3", 1);
  const Outcome outcome = run("bench mlp --backend native,torch-cpu --json" + kSmall);
  unsetenv("RIDGELINE_PYTHON");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json document = Json::parse(outcome.out);
  EXPECT_EQ(document.at("results").size(), 1U);
  ASSERT_EQ(document.at("left_out").size(), 1U);
  EXPECT_NE(document.at("left_out")[0].at("reason").get<std::string>().find("python"),
            std::string::npos);
}

TEST_F(BenchCli, APeerThatHangsIsLeftOutAndTheRestGoesOn) {
  const fs::path python = folder_ / "python3";
  std::ofstream(python) << "#!/bin/sh\nexec sleep 600\n";
  fs::permissions(python, fs::perms::owner_all);
  setenv("RIDGELINE_PYTHON", python.c_str(), 1);
  const Outcome outcome =
      run("bench mlp --backend torch-cpu,native --peer-timeout 1 --json" + kSmall);
  unsetenv("RIDGELINE_PYTHON");
  const Json document = Json::parse(outcome.out);
  ASSERT_EQ(document.at("results").size(), 1U) << outcome.err;
  EXPECT_EQ(document.at("results")[0].at("backend"), "native");
  EXPECT_EQ(document.at("left_out").size() + document.at("failed").size(), 1U);
}

// As PyTorch does on machines that report a unit and refuse its instructions.
TEST_F(BenchCli, APeerThatDiesIsNamedWithItsSignal) {
  const fs::path python = folder_ / "python3";
  std::ofstream(python) << "#!/bin/sh\nread line; echo '{\"id\":1,\"versions\":{\"python\":\"0\"},"
                           "\"peers\":{\"torch-cpu\":{\"available\":true,\"reason\":null}}}'\n"
                           "read line; kill -ILL $$\n";
  fs::permissions(python, fs::perms::owner_all);
  setenv("RIDGELINE_PYTHON", python.c_str(), 1);
  const Outcome json = run("bench mlp --backend torch-cpu,native --json" + kSmall);
  const Outcome table = run("bench mlp --backend torch-cpu,native" + kSmall);
  unsetenv("RIDGELINE_PYTHON");
  EXPECT_EQ(json.code, 1) << json.err;
  const Json document = Json::parse(json.out);
  ASSERT_EQ(document.at("results").size(), 1U);
  EXPECT_EQ(document.at("results")[0].at("backend"), "native");
  ASSERT_EQ(document.at("failed").size(), 1U);
  EXPECT_NE(document.at("failed")[0].at("error").get<std::string>().find("SIGILL"),
            std::string::npos);
  EXPECT_NE(table.out.find("SIGILL"), std::string::npos) << table.out;
}

}  // namespace
}  // namespace ridgeline
