// What the laboratory's commands tell and store beside their tables: sensors, plans, data waits,
// sums of steps, and what was wrong with a training.

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "store/store.h"
#include "support/program.h"

namespace ridgeline {
namespace {

using Json = nlohmann::json;
using testing::Outcome;

class LabCli : public testing::ProgramTest {
 protected:
  [[nodiscard]] Store store() const { return Store::open_existing(folder_ / "ridgeline.db"); }
  [[nodiscard]] static std::string severity(const Store& store, const std::string& name) {
    for (const Finding& finding : store.findings(store.run("last").id)) {
      if (finding.name == name) return finding.severity;
    }
    return {};
  }
};

TEST_F(LabCli, SensorsAreListedWithAReadingOrAReason) {
  const Outcome text = run("env --sensors");
  EXPECT_EQ(text.code, 0);
  EXPECT_NE(text.out.find("rss_bytes"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("cpu_energy_joules"), std::string::npos) << text.out;
  const Outcome json = run("env --sensors --json");
  ASSERT_EQ(json.code, 0);
  const Json sensors = Json::parse(json.out).at("sensors");
  EXPECT_GE(sensors.size(), 8U);
  for (const Json& sensor : sensors) {
    EXPECT_NE(sensor.at("value").is_null(), sensor.at("reason").is_null()) << sensor;
  }
  EXPECT_EQ(run("env --sensors --measure").code, 2);
}

TEST_F(LabCli, ThePlanOfAnInferenceIsShown) {
  const Outcome outcome = run(
      "bench mobilenet_v2 --inference --image 32 --batch 1 --warmup 0 --iterations 1 --print-plan "
      "--no-store --telemetry 0");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("plan of an inference by native, 52 batch norms folded"),
            std::string::npos)
      << outcome.out.substr(0, 500);
}

TEST_F(LabCli, PeersWithALoaderAreRefusedWithTheReason) {
  const Outcome outcome = run("bench mlp --backend torch-cpu --loader --no-store");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("travel from process to process"), std::string::npos) << outcome.err;
}

TEST_F(LabCli, EveryIterationWithALoaderTellsItsWaitAndItsUpload) {
  ASSERT_EQ(run("bench mlp --loader --image 1x8x8 --batch 4 --samples 40 --warmup 1 --iterations "
                "12 --threads 1")
                .code,
            0);
  const Store opened = store();
  int measured = 0;
  for (const Sample& sample : opened.samples(opened.run("last").id)) {
    if (sample.kind != SampleKind::measured && sample.kind != SampleKind::warmup) continue;
    ++measured;
    ASSERT_TRUE(sample.data_wait_seconds && sample.upload_seconds);
    EXPECT_LE(*sample.data_wait_seconds + *sample.upload_seconds, sample.wall_seconds);
  }
  EXPECT_EQ(measured, 13);
}

TEST_F(LabCli, TheSumOfTheStepsIsHeldAgainstWholeIterations) {
  const Outcome outcome =
      run("bench mnist_cnn --image 1x12x12 --batch 4 --warmup 1 --iterations 3 --per-step");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("% of a whole iteration"), std::string::npos) << outcome.out;
  const Store opened = store();
  const RunRecord last = opened.run("last");
  EXPECT_GT(last.numbers.at("step_sum_share"), 0.0);
}

const std::string kShortTraining =
    "train mlp --data synthetic:1x8x8:4:120 --epochs 2 --batch 20 --threads 1 --telemetry 0 ";

TEST_F(LabCli, ATrainingTellsWhenItsTargetWasReached) {
  ASSERT_EQ(run(kShortTraining + "--target-accuracy 1%").code, 0);
  const RunRecord last = store().run("last");
  const std::map<std::string, double>& numbers = last.numbers;
  EXPECT_EQ(last.work.target_accuracy, 0.01);
  EXPECT_EQ(numbers.at("target_epoch"), 1.0);
  EXPECT_GT(numbers.at("target_seconds"), 0.0);
  EXPECT_GT(numbers.at("target_total_seconds"), numbers.at("target_seconds"));
  EXPECT_GT(numbers.at("first_loss"), 0.0);
  EXPECT_GT(numbers.at("first_step_seconds"), 0.0);
  EXPECT_EQ(severity(store(), "parameters never change"), "");
  ASSERT_EQ(run(kShortTraining + "--target-accuracy 100% --epochs 1").code, 0);
  EXPECT_FALSE(store().run("last").numbers.contains("target_epoch"));
}

TEST_F(LabCli, WhatIsWrongWithATrainingIsAFinding) {
  const Outcome frozen = run(kShortTraining + "--lr 0");
  EXPECT_EQ(frozen.code, 0);
  EXPECT_EQ(severity(store(), "parameters never change"), "warning") << frozen.err;
  const std::vector<Finding> findings = store().findings(store().run("last").id);
  for (const Finding& finding : findings) EXPECT_FALSE(finding.evidence.empty());
  EXPECT_EQ(std::count_if(findings.begin(), findings.end(),
                          [](const Finding& f) { return f.name == "parameters never change"; }),
            1)
      << "that of the end, not that of the first epoch too";
  EXPECT_EQ(severity(store(), "accuracy at chance"), "warning") << frozen.err;
  const Outcome broken = run(kShortTraining + "--lr 1e30");
  EXPECT_EQ(broken.code, 1);
  EXPECT_EQ(severity(store(), "loss is not a number"), "error") << broken.err;
  EXPECT_EQ(store().run("last").status, RunStatus::failed);
}

}  // namespace
}  // namespace ridgeline
