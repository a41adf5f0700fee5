// What `describe` tells must be what the plan and the session say: no figure of its own.

#include "inspect/complexity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "train/step_runner.h"

namespace ridgeline {
namespace {

StepSpec spec_of(const std::string& model, std::int64_t batch, std::int64_t image = 0) {
  StepSpec spec;
  spec.model = default_config(model);
  if (image > 0) spec.model.height = spec.model.width = image;
  spec.batch = batch;
  spec.optimizer = SgdAttributes{.momentum = 0.9};
  return spec;
}

class Complexity : public testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] Plan plan_of(const StepSpec& spec) { return dry_plan(spec, request, *cpu); }
  std::unique_ptr<Device> cpu = make_cpu_device();
  PlanRequest request{.backend = "native", .disabled_passes = {}, .cache = {}};
};

TEST_P(Complexity, PhasesAddUpToThePlansWork) {
  const Plan plan = plan_of(spec_of(GetParam(), 2));
  const StepWork work = work_of(plan);
  EXPECT_EQ(work.total.macs, plan.work().macs);
  EXPECT_EQ(work.total.flops, plan.work().flops);
  EXPECT_GT(work.of(Phase::optimizer).flops, 0);
  EXPECT_LE(work.moved_bytes, work.total.bytes_read + work.total.bytes_written);
}

TEST_P(Complexity, FirstLayerHasNoDataGradient) {
  const Plan plan = plan_of(spec_of(GetParam(), 1));
  const StepWork work = work_of(plan);
  const std::vector<LayerComplexity> layers = layers_of(plan);
  const auto first = std::find_if(layers.begin(), layers.end(),
                                  [](const auto& layer) { return layer.forward.macs > 0; });
  ASSERT_NE(first, layers.end());
  EXPECT_EQ(work.total.macs, 3 * work.forward().macs - first->forward.macs);
  EXPECT_EQ(first->backward.macs, first->forward.macs);
}

TEST_P(Complexity, LayersAddUpToTheStep) {
  const StepSpec spec = spec_of(GetParam(), 2);
  const Plan plan = plan_of(spec);
  Cost total;
  std::int64_t parameters = 0;
  for (const LayerComplexity& layer : layers_of(plan)) {
    total += layer.total();
    parameters += layer.parameters;
  }
  EXPECT_EQ(total.flops, work_of(plan).total.flops);
  EXPECT_EQ(total.bytes_read, work_of(plan).total.bytes_read);
  EXPECT_EQ(parameters, count_parameters(training_graph(spec).parameters));
}

TEST_P(Complexity, MemoryIsWhatASessionAllocates) {
  const StepSpec spec = spec_of(GetParam(), 3);
  const BatchComplexity complexity = batch_complexity(plan_of(spec), 3);
  StepRunner runner(*cpu, request);
  (void)runner.add_training(spec);
  EXPECT_EQ(complexity.peak, runner.bytes());
  EXPECT_GE(complexity.gaps, 0);
  EXPECT_EQ(complexity.peak,
            std::accumulate(complexity.memory.begin(), complexity.memory.end(), complexity.gaps));
}

TEST_P(Complexity, LargestBatchFitsAndTheNextDoesNot) {
  const StepSpec spec = spec_of(GetParam(), 1);
  const BatchComplexity known = batch_complexity(plan_of(spec), 1);
  const auto needed = [&](std::int64_t batch) {
    StepSpec sized = spec;
    sized.batch = batch;
    return batch_complexity(plan_of(sized), batch).peak;
  };
  const std::int64_t limit = needed(37) + 1000;
  const LargestBatch largest = largest_batch(spec, request, *cpu, limit, known);
  EXPECT_GE(largest.batch, 37);
  EXPECT_EQ(largest.bytes, needed(largest.batch));
  EXPECT_LE(largest.bytes, limit);
  EXPECT_GT(needed(largest.batch + 1), limit);
  EXPECT_EQ(largest_batch(spec, request, *cpu, 1000, known).batch, 0);
}

INSTANTIATE_TEST_SUITE_P(Models, Complexity,
                         testing::Values("mlp", "mnist_cnn", "resnet18", "mobilenet_v2",
                                         "squeezenet1_1", "densenet121"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace ridgeline
