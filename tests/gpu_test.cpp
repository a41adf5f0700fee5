// Training on a GPU: what the op cases cannot show. Skipped where there is none.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backends/registry.h"
#include "base/error.h"
#include "data/synthetic.h"
#include "lab/verify.h"
#include "support/perturbed_weights.h"
#include "support/toy_networks.h"
#include "train/trainer.h"

namespace ridgeline {
namespace {

struct Param {
  const Backend* backend;
  Precision precision;
};

std::vector<Param> params() {
  std::vector<Param> list;
  for (const Backend* backend : usable_backends()) {
    if (backend->device != "cuda") continue;
    for (const Precision precision :
         {Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16}) {
      list.push_back({backend, precision});
    }
  }
  return list;
}

class Gpu : public ::testing::TestWithParam<Param> {
 protected:
  void SetUp() override {
    device_ = make_device("cuda:0");
    const std::string refusal = device_->refuse(GetParam().precision);
    if (!refusal.empty()) GTEST_SKIP() << refusal;
  }

  [[nodiscard]] ToyNetwork network(std::size_t index) const {
    ToyNetwork network = toy_networks()[index];
    network.spec.precision = GetParam().precision;
    return network;
  }

  // Relative error of a first loss: products are rounded once, losses are averages.
  [[nodiscard]] double loss_tolerance() const {
    switch (GetParam().precision) {
      case Precision::fp32:
        return 1e-5;
      case Precision::tf32:
      case Precision::fp16:
        return 5e-3;
      case Precision::bf16:
        return 3e-2;
    }
    return 0.0;
  }

  // Relative error of logits: every layer rounds its result, tens of them in a row.
  [[nodiscard]] double logits_tolerance() const {
    switch (GetParam().precision) {
      case Precision::fp32:
        return 1e-4;
      case Precision::tf32:
      case Precision::fp16:
        return 2e-2;
      case Precision::bf16:
        return 1e-1;
    }
    return 0.0;
  }

  std::unique_ptr<Device> device_;
};

TEST_P(Gpu, TheFirstLossIsTheCpus) {
  const std::unique_ptr<Device> cpu = make_cpu_device();
  for (std::size_t i = 0; i < toy_networks().size(); ++i) {
    const double expected = train_losses(toy_networks()[i], reference_backend, *cpu, 1)[0];
    const double loss = train_losses(network(i), *GetParam().backend, *device_, 1)[0];
    EXPECT_NEAR(loss, expected, loss_tolerance() * expected) << toy_networks()[i].name;
  }
}

TEST_P(Gpu, NetworksLearnTheirBatch) {
  for (std::size_t i = 0; i < toy_networks().size(); ++i) {
    const std::vector<double> losses = train_losses(network(i), *GetParam().backend, *device_, 8);
    EXPECT_LT(losses.back(), losses.front()) << toy_networks()[i].name;
  }
}

TEST_P(Gpu, TwoRunsAreBitwiseEqual) {
  for (std::size_t i = 0; i < toy_networks().size(); ++i) {
    EXPECT_EQ(train_losses(network(i), *GetParam().backend, *device_, 5),
              train_losses(network(i), *GetParam().backend, *device_, 5));
  }
}

// The first run of a plan is launched kernel by kernel, later ones are replayed as a whole.
TEST_P(Gpu, AReplayedStepDoesWhatTheLaunchedOneDid) {
  const ToyNetwork toy = network(0);
  const StepGraph step = training_graph(toy.spec, toy.build);
  Session session(*device_);
  PlanOptions options;
  options.providers = providers_of(GetParam().backend->name);
  const Session::PlanId id = session.add(make_plan(step.graph, options));
  session.prepare();
  std::vector<double> losses;
  for (int run = 0; run < 4; ++run) {
    fill_state(session, step, toy.spec, 1);
    session.run(id);
    losses.push_back(session.read_value(id, step.loss)[0]);
  }
  for (const double loss : losses) EXPECT_EQ(loss, losses[0]);
}

// Batch norms folded in double on the host, then cast; the second run is recorded, the third is
// replayed.
TEST_P(Gpu, FoldedLogitsAreTheCpus) {
  const std::unique_ptr<Device> cpu = make_cpu_device();
  for (const char* model : {"resnet18", "mobilenet_v2"}) {
    StepSpec spec = testing::small_spec(model);
    const std::vector<double> expected = testing::evaluated_logits(*cpu, "native", spec);
    spec.precision = GetParam().precision;
    PlanRequest request;
    request.backend = GetParam().backend->name;
    InferenceRunner runner(*device_, request, spec);
    runner.session().prepare();
    runner.write_weights(testing::perturbed_weights);
    runner.write_batch(testing::random_pixels(spec));
    std::vector<double> first;
    for (int run = 0; run < 3; ++run) {
      runner.run();
      const std::vector<double> logits = runner.logits();
      EXPECT_LT(testing::relative_error(logits, expected), logits_tolerance()) << model;
      if (run == 0) first = logits;
      EXPECT_EQ(logits, first) << model;
    }
    EXPECT_EQ(
        std::count_if(runner.plan().graph->nodes().begin(), runner.plan().graph->nodes().end(),
                      [](const Node& node) { return node.kind == OpKind::bn_apply; }),
        0);
    // Narrow weights are cast once, not in every run.
    for (const Step& step : runner.plan().steps) {
      if (step.is_reorder()) continue;
      EXPECT_NE(runner.plan().graph->node(step.nodes[0]).kind, OpKind::cast) << step.layer;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, Gpu, ::testing::ValuesIn(params()), [](const auto& instance) {
  return std::string(instance.param.backend->name) + "_" +
         std::string(name_of(instance.param.precision));
});
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Gpu);

Split small_data() {
  return make_synthetic({.channels = 1,
                         .height = 16,
                         .width = 16,
                         .classes = 4,
                         .count = 256,
                         .test_count = 64,
                         .seed = 3});
}

TrainConfig small_config(Precision precision) {
  TrainConfig config;
  config.step.model.name = "mnist_cnn";
  config.step.model.height = config.step.model.width = 16;
  config.step.model.classes = 4;
  config.step.batch = 32;
  config.step.precision = precision;
  config.step.optimizer = SgdAttributes{.momentum = 0.9};
  config.plan.backend = "cuda";
  config.learning_rate = 0.02;
  config.epochs = 4;
  return config;
}

TEST(GpuTraining, Fp16SurvivesAnOverflow) {
  if (const std::string reason = cuda_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
  const Split data = small_data();
  TrainConfig config = small_config(Precision::fp16);
  config.first_loss_scale = 0x1p30;
  TrainObserver silent;
  Trainer trainer(config, data, make_device("cuda:0"));
  const TrainResult result = trainer.train(silent);
  ASSERT_TRUE(result.scaling.has_value());
  EXPECT_GT(result.scaling->overflows, 5);
  EXPECT_LT(result.scaling->scale, 0x1p25);
  EXPECT_LT(result.epochs.back().train_loss, result.epochs.front().train_loss);
  EXPECT_TRUE(std::isfinite(result.epochs.back().train_loss));
}

TEST(GpuTraining, TooLittleMemoryNamesTheLargestBatch) {
  if (const std::string reason = cuda_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
  StepSpec spec;
  spec.model = default_config("resnet50");
  spec.batch = 1 << 11;
  const std::unique_ptr<Device> device = make_device("cuda:0");
  std::vector<PlanRequest> requests(1);
  requests[0].backend = "cuda";
  try {
    check_training_memory(*device, spec, requests);
    FAIL() << "thousands of images of 224x224 cannot fit";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("largest batch that fits"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace ridgeline
