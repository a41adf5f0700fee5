// Transfer learning: parameters that are not trained cost nothing in the backward pass.

#include <gtest/gtest.h>

#include "base/error.h"
#include "data/synthetic.h"
#include "devices/device.h"
#include "train/trainer.h"

namespace ridgeline {
namespace {

StepSpec small_step(const char* model, std::vector<std::string> freeze) {
  StepSpec step;
  step.model = default_config(model);
  step.model.height = step.model.width = 64;
  step.model.classes = 5;
  step.batch = 4;
  step.freeze = std::move(freeze);
  step.optimizer = SgdAttributes{.momentum = 0.9};
  return step;
}

Plan plan_of(const StepSpec& step) {
  const auto device = make_cpu_device();
  return plan_for(training_graph(step).graph, PlanRequest{}, *device);
}

bool is_backward(Phase phase) {
  return phase == Phase::backward_data || phase == Phase::backward_weights;
}

TEST(Freeze, FrozenFeaturesHaveNoBackwardPass) {
  const Plan frozen = plan_of(small_step("squeezenet1_1", {"features.*"}));
  const Plan whole = plan_of(small_step("squeezenet1_1", {}));
  for (const Step& step : frozen.steps) {
    if (!is_backward(step.phase)) continue;
    EXPECT_NE(step.layer.substr(0, 9), "features.") << step.layer;
  }
  EXPECT_LT(frozen.work().flops, whole.work().flops / 2);
  EXPECT_LT(frozen.memory().scratch_peak, whole.memory().scratch_peak / 2);
  EXPECT_EQ(frozen.memory().of(Role::gradient), frozen.memory().of(Role::optimizer_state));
  EXPECT_LT(frozen.memory().of(Role::gradient), whole.memory().of(Role::gradient) / 10);
}

TEST(Freeze, AFrozenBatchNormWorksAsInEvaluation) {
  const StepGraph step = training_graph(small_step("resnet18", {"layer1.*", "bn1.*", "conv1.*"}));
  int updated = 0;
  for (const Node& node : step.graph.nodes()) {
    if (node.kind != OpKind::bn_update_running) continue;
    ++updated;
    EXPECT_NE(node.layer.substr(0, 6), "layer1");
    EXPECT_NE(node.layer, "bn1");
  }
  EXPECT_EQ(updated, 15);  // of 20: bn1 and four in layer1 are frozen
}

TEST(Freeze, FrozenParametersStayAndTheOthersMove) {
  const Split data = make_synthetic({.channels = 3,
                                     .height = 64,
                                     .width = 64,
                                     .classes = 5,
                                     .count = 8,
                                     .test_count = 2,
                                     .seed = 3});
  TrainConfig config;
  config.step = small_step("squeezenet1_1", {"features.*"});
  config.epochs = 1;
  Trainer trainer(config, data, make_cpu_device());
  TrainObserver observer;
  (void)trainer.train(observer);
  EXPECT_TRUE(trainer.runner().unchanged_parameters().empty());
  for (const Parameter& parameter : trainer.runner().parameters()) {
    std::vector<float> now(static_cast<std::size_t>(parameter.shape.elements()));
    trainer.runner().session().read(parameter.name, std::as_writable_bytes(std::span(now)));
    const std::vector<double> start = initial_values(parameter, config.seed);
    bool same = true;
    for (std::size_t i = 0; i < now.size(); ++i)
      same = same && now[i] == static_cast<float>(start[i]);
    EXPECT_EQ(same, parameter.frozen) << parameter.name;
  }
}

TEST(Freeze, AWrongPatternIsRefused) {
  EXPECT_THROW((void)training_graph(small_step("resnet18", {"features.*"})), Error);
  EXPECT_THROW((void)training_graph(small_step("resnet18", {"*"})), Error);
}

}  // namespace
}  // namespace ridgeline
