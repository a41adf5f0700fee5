// Two plans compared op by op: nothing lost, nothing counted twice.

#include "measure/profile/difference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "inspect/complexity.h"
#include "measure/step_times.h"
#include "plan/measure.h"

namespace ridgeline {
namespace {

StepTime step(const char* covers, double seconds, const char* kernel = "kernel") {
  StepTime made;
  made.covers = covers;
  made.seconds = seconds;
  made.kernel = kernel;
  return made;
}

StepTime reorder(const char* layer, double seconds) {
  StepTime made;
  made.layer = layer;
  made.ops = "reorder";
  made.phase = "forward";
  made.seconds = seconds;
  return made;
}

DifferenceSide side(const char* name, std::vector<StepTime> steps, std::optional<double> seconds) {
  DifferenceSide made;
  made.name = name;
  made.run.work.batch = 64;
  made.steps = std::move(steps);
  made.seconds = seconds;
  return made;
}

const DifferenceRow* find(const StepDifference& difference, const std::string& layer,
                          const std::string& op) {
  for (const DifferenceRow& row : difference.rows) {
    if (std::count(row.layers.begin(), row.layers.end(), layer) > 0 &&
        std::count(row.ops.begin(), row.ops.end(), op) > 0) {
      return &row;
    }
  }
  return nullptr;
}

// With times that are sums of powers of two all of it is exact.
void expect_adds_up(const StepDifference& difference, const DifferenceSide& a,
                    const DifferenceSide& b) {
  double sum_a = 0.0, sum_b = 0.0, sum = 0.0;
  std::int64_t steps_a = 0, steps_b = 0;
  for (const DifferenceRow& row : difference.rows) {
    sum_a += row.a;
    sum_b += row.b;
    sum += row.difference();
    steps_a += row.steps_a;
    steps_b += row.steps_b;
  }
  EXPECT_EQ(sum_a, difference.total_a);
  EXPECT_EQ(sum_b, difference.total_b);
  EXPECT_EQ(sum, difference.difference());
  EXPECT_EQ(steps_a, std::ssize(a.steps));
  EXPECT_EQ(steps_b, std::ssize(b.steps));
}

TEST(Difference, AFusedStepStandsAgainstAllStepsThatItReplaces) {
  const DifferenceSide a =
      side("A",
           {step("forward conv2d conv1", 4.0), step("forward bias conv1", 1.0),
            step("forward activation relu1", 0.5), step("forward linear fc", 2.0)},
           8.0);
  const DifferenceSide b = side("B",
                                {step("forward conv2d conv1; forward bias conv1; forward "
                                      "activation relu1",
                                      3.0),
                                 step("forward linear fc", 0.25)},
                                3.5);
  const StepDifference difference = step_difference(a, b, {});
  expect_adds_up(difference, a, b);
  ASSERT_EQ(difference.rows.size(), 3U);
  const DifferenceRow& conv = difference.rows[0];  // the largest difference stands first
  EXPECT_EQ(conv.ops, (std::vector<std::string>{"conv2d", "bias", "activation"}));
  EXPECT_EQ(conv.layers, (std::vector<std::string>{"conv1", "relu1"}));
  EXPECT_EQ(conv.steps_a, 3);
  EXPECT_EQ(conv.steps_b, 1);
  EXPECT_EQ(conv.difference(), -2.5);
  EXPECT_EQ(difference.rows[1].speedup(), 8.0);
  EXPECT_EQ(difference.rows[2].kind, RowKind::between_steps);
  EXPECT_EQ(difference.rows[2].a, 0.5);
  EXPECT_EQ(difference.rows[2].b, 0.25);
}

TEST(Difference, OverlappingFusionsMeetInTheSmallestCommonGroup) {
  // A: (1 2)(3), B: (1)(2 3): only all three cover the same on both sides.
  const DifferenceSide a = side(
      "A", {step("forward conv2d l; forward bias l", 1.0), step("forward activation l", 2.0)}, {});
  const DifferenceSide b = side(
      "B", {step("forward conv2d l", 4.0), step("forward bias l; forward activation l", 8.0)}, {});
  const StepDifference difference = step_difference(a, b, {});
  expect_adds_up(difference, a, b);
  ASSERT_EQ(difference.rows.size(), 1U);
  EXPECT_EQ(difference.rows[0].a, 3.0);
  EXPECT_EQ(difference.rows[0].b, 12.0);
  // The iterations were not timed: then there is no time between the steps.
  EXPECT_EQ(difference.warnings.size(), 2U);
}

TEST(Difference, WhatOneSideAloneComputesHasItsOwnRow) {
  const DifferenceSide a =
      side("A", {step("forward conv2d c", 2.0), reorder("c", 0.5), reorder("c", 0.25)}, 3.0);
  const DifferenceSide b =
      side("B", {step("input cast data", 0.125), step("forward conv2d c", 1.0)}, 1.5);
  const StepDifference difference = step_difference(a, b, {});
  expect_adds_up(difference, a, b);
  const DifferenceRow* reorders = find(difference, "c", "reorder");
  ASSERT_NE(reorders, nullptr);
  EXPECT_EQ(reorders->kind, RowKind::only_a);
  EXPECT_EQ(reorders->a, 0.75);
  EXPECT_EQ(reorders->speedup(), std::nullopt);
  const DifferenceRow* cast = find(difference, "data", "cast");
  ASSERT_NE(cast, nullptr);
  EXPECT_EQ(cast->kind, RowKind::only_b);
  EXPECT_EQ(cast->difference(), 0.125);
}

TEST(Difference, TheSameOpInTwoPhasesIsTwoThings) {
  const DifferenceSide a =
      side("A", {step("forward add l", 1.0), step("backward-data add l", 2.0)}, 3.0);
  const DifferenceSide b =
      side("B", {step("backward-data add l", 1.0), step("forward add l", 1.0)}, 2.0);
  const StepDifference difference = step_difference(a, b, {});
  ASSERT_EQ(difference.rows.size(), 3U);
  EXPECT_EQ(difference.rows[0].phases, (std::vector<std::string>{"backward-data"}));
  EXPECT_EQ(difference.rows[0].difference(), -1.0);
}

TEST(Difference, RowsByOpAndByLayerAndTheTopAddUpToo) {
  const DifferenceSide a = side("A",
                                {step("forward conv2d c1", 4.0), step("forward conv2d c2", 8.0),
                                 step("forward pool p", 1.0), step("backward-data pool p", 2.0)},
                                16.0);
  const DifferenceSide b = side("B",
                                {step("forward conv2d c1", 1.0), step("forward conv2d c2", 1.0),
                                 step("forward pool p", 0.5), step("backward-data pool p", 0.5)},
                                4.0);
  const StepDifference by_op = step_difference(a, b, {.by = DifferenceBy::op});
  expect_adds_up(by_op, a, b);
  ASSERT_EQ(by_op.rows.size(), 3U);
  EXPECT_EQ(by_op.rows[0].a, 12.0);
  EXPECT_EQ(by_op.rows[0].speedup(), 6.0);
  const StepDifference by_layer = step_difference(a, b, {.by = DifferenceBy::layer});
  expect_adds_up(by_layer, a, b);
  ASSERT_EQ(by_layer.rows.size(), 4U);
  EXPECT_EQ(find(by_layer, "p", "pool")->a, 3.0);
  const StepDifference top = step_difference(a, b, {.top = 1});
  expect_adds_up(top, a, b);
  ASSERT_EQ(top.rows.size(), 3U);
  EXPECT_EQ(top.rows[0].layers, (std::vector<std::string>{"c2"}));
  EXPECT_EQ(top.rows[1].kind, RowKind::others);
  EXPECT_EQ(top.rows[1].rows, 3);
}

TEST(Difference, UnlikeWorkIsRefusedAndForcedBatchesAreComparedByTheSample) {
  DifferenceSide a = side("A", {step("forward linear l", 64.0)}, 64.0);
  DifferenceSide b = side("B", {step("forward linear l", 64.0)}, 64.0);
  b.run.work.batch = 128;
  EXPECT_THROW((void)step_difference(a, b, {}), Error);
  const StepDifference difference = step_difference(a, b, {.force = true});
  EXPECT_TRUE(difference.per_sample);
  EXPECT_EQ(difference.total_a, 1.0);
  EXPECT_EQ(difference.total_b, 0.5);
  EXPECT_EQ(difference.rows[0].difference(), -0.5);
  a.steps.clear();
  EXPECT_THROW((void)step_difference(a, b, {.force = true}), Error);
}

TEST(Difference, StepsOfAnOlderStoreAreMatchedByTheirFirstLayer) {
  StepTime old;
  old.layer = "conv1";
  old.ops = "conv2d+bias";
  old.phase = "forward";
  old.seconds = 2.0;
  const DifferenceSide a = side("A", {old}, 2.0);
  const DifferenceSide b =
      side("B", {step("forward conv2d conv1", 0.5), step("forward bias conv1", 0.25)}, 1.0);
  const StepDifference difference = step_difference(a, b, {});
  expect_adds_up(difference, a, b);
  EXPECT_EQ(difference.rows[0].kind, RowKind::both);
  EXPECT_EQ(difference.rows[0].steps_b, 2);
  ASSERT_EQ(difference.warnings.size(), 1U);
}

// --- Plans of the engine ------------------------------------------------------------------------

class DifferenceOfPlans : public ::testing::Test {
 protected:
  [[nodiscard]] DifferenceSide planned(const std::string& model, const char* backend,
                                       bool fusion = true) {
    StepSpec spec;
    spec.model = default_config(model);
    spec.batch = 8;
    spec.optimizer = SgdAttributes{.momentum = 0.9};
    PlanRequest request;
    request.backend = backend;
    if (!fusion) request.disabled_passes = {"fusion"};
    const Plan plan = dry_plan(spec, request, *cpu_);
    std::vector<double> seconds;
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      seconds.push_back(static_cast<double>((s * 7 + 3) % 32 + 1) / 1024.0);
    }
    DifferenceSide made;
    made.name = backend;
    made.run.work.batch = spec.batch;
    made.steps = step_times(plan, *cpu_, seconds);
    made.seconds = 4.0;
    return made;
  }
  std::unique_ptr<Device> cpu_ = make_cpu_device();
};

TEST_F(DifferenceOfPlans, EveryOpOfOneBackendIsFoundInTheOthers) {
  for (const char* model : {"mlp", "mnist_cnn"}) {
    const DifferenceSide reference = planned(model, "reference");
    for (const DifferenceSide& other :
         {planned(model, "native"), planned(model, "native", false), planned(model, "onednn")}) {
      for (const DifferenceBy by : {DifferenceBy::step, DifferenceBy::op, DifferenceBy::layer}) {
        const StepDifference difference = step_difference(reference, other, {.by = by});
        expect_adds_up(difference, reference, other);
        EXPECT_TRUE(difference.warnings.empty());
        for (const DifferenceRow& row : difference.rows) {
          if (row.kind != RowKind::only_a && row.kind != RowKind::only_b) continue;
          EXPECT_EQ(row.ops, (std::vector<std::string>{"reorder"})) << model << ' ' << other.name;
        }
      }
    }
  }
}

TEST_F(DifferenceOfPlans, ConvolutionsMeetOneToOneWhereNothingIsFusedAcrossThem) {
  const DifferenceSide a = planned("mnist_cnn", "reference");
  const DifferenceSide b = planned("mnist_cnn", "native", false);
  const StepDifference difference = step_difference(a, b, {});
  std::set<std::string> found;
  for (const DifferenceRow& row : difference.rows) {
    if (row.ops != std::vector<std::string>{"conv2d_backward_weights"}) continue;
    EXPECT_EQ(row.layers.size(), 1U);
    EXPECT_EQ(row.steps_a, 1);
    EXPECT_EQ(row.steps_b, 1);
    found.insert(row.layers.front());
  }
  EXPECT_GE(found.size(), 1U);
}

}  // namespace
}  // namespace ridgeline
