// Inference: batch norms folded into weights give what they gave as steps of their own, and are
// gone from the plan; constant weights are converted once and again after they change.

#include <gtest/gtest.h>

#include <limits>

#include "support/images.h"
#include "support/npy.h"
#include "support/perturbed_weights.h"
#include "support/queued_device.h"
#include "support/toy_networks.h"
#include "support/worst_difference.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;
using testing::evaluated_logits;
using testing::inferred_logits;
using testing::perturbed_weights;
using testing::random_pixels;
using testing::relative_error;
using testing::small_spec;

constexpr const char* kNetworks[] = {"mlp",          "mnist_cnn",     "resnet18",   "resnet50",
                                     "mobilenet_v2", "squeezenet1_1", "densenet121"};

// Both round every layer's result, in different places: tens of roundings.
constexpr double kFloatTolerance = 256.0 * std::numeric_limits<float>::epsilon();

std::int64_t count(const Graph& graph, OpKind kind) {
  return std::count_if(graph.nodes().begin(), graph.nodes().end(),
                       [&](const Node& node) { return node.kind == kind; });
}

class SlowInference : public ::testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Device> device_ = make_cpu_device();
};

TEST_P(SlowInference, FoldedLogitsAreThoseOfTheEvaluationInDouble) {
  StepSpec spec = small_spec(GetParam());
  spec.dtype = DType::f64;
  const std::vector<double> expected = evaluated_logits(*device_, "reference", spec);
  EXPECT_LT(relative_error(inferred_logits(*device_, "reference", spec), expected), 1e-10);
}

TEST_P(SlowInference, FoldedLogitsAreThoseOfTheEvaluationInFloat) {
  const StepSpec spec = small_spec(GetParam());
  for (const char* backend : {"native", "onednn"}) {
    const std::vector<double> expected = evaluated_logits(*device_, backend, spec);
    EXPECT_LT(relative_error(inferred_logits(*device_, backend, spec), expected), kFloatTolerance)
        << backend;
  }
}

TEST_P(SlowInference, WithoutFoldingTheNormsStayAndTheLogitsAreTheSame) {
  StepSpec spec = small_spec(GetParam());
  spec.fold_norms = false;
  const InferenceGraph inference = inference_graph(spec);
  EXPECT_TRUE(inference.folds.empty());
  EXPECT_EQ(count(inference.graph, OpKind::bn_apply),
            count(evaluation_graph(spec).graph, OpKind::bn_apply));
  EXPECT_EQ(inferred_logits(*device_, "native", spec), evaluated_logits(*device_, "native", spec));
}

TEST_P(SlowInference, OneImageGivesItsRowOfABatch) {
  const std::vector<double> both = inferred_logits(*device_, "native", small_spec(GetParam()));
  const std::vector<double> one = inferred_logits(*device_, "native", small_spec(GetParam(), 1));
  EXPECT_LT(relative_error(one, std::span(both).first(one.size())), kFloatTolerance);
}

INSTANTIATE_TEST_SUITE_P(Networks, SlowInference, ::testing::ValuesIn(kNetworks),
                         [](const auto& instance) { return std::string(instance.param); });

struct NormCount {
  const char* model;
  std::int64_t folded, kept;
};

class FoldedNorms : public ::testing::TestWithParam<NormCount> {};

TEST_P(FoldedNorms, AreThoseBehindAConvolution) {
  const StepSpec spec = small_spec(GetParam().model);
  const InferenceGraph inference = inference_graph(spec);
  EXPECT_EQ(static_cast<std::int64_t>(inference.folds.size()), GetParam().folded);
  EXPECT_EQ(count(inference.graph, OpKind::bn_apply), GetParam().kept);
  EXPECT_EQ(inference.graph.find(kLabels), kNoValue);
  for (const OpKind kind : {OpKind::softmax_cross_entropy, OpKind::metrics, OpKind::dropout}) {
    EXPECT_EQ(count(inference.graph, kind), 0) << name_of(kind);
  }
  for (const Fold& fold : inference.folds) {
    for (const std::string& gone : {fold.weights, fold.scale, fold.shift, fold.mean}) {
      EXPECT_EQ(inference.graph.find(gone), kNoValue) << gone;
    }
  }
}

// A dense layer's first norm reads the features of all layers before it, and each reader scales
// them in its own way; so do the three transitions' norms and the last one.
INSTANTIATE_TEST_SUITE_P(Networks, FoldedNorms,
                         ::testing::Values(NormCount{"mlp", 0, 0}, NormCount{"resnet18", 20, 0},
                                           NormCount{"resnet50", 53, 0},
                                           NormCount{"mobilenet_v2", 52, 0},
                                           NormCount{"squeezenet1_1", 0, 0},
                                           NormCount{"densenet121", 59, 62}),
                         [](const auto& instance) { return std::string(instance.param.model); });

TEST(FoldNorms, ABiasBeforeTheNormIsFoldedToo) {
  StepSpec spec = toy_networks()[0].spec;
  const BuildNetwork build = [](NetworkBuilder& net, ValueId image) {
    const ValueId image_out =
        net.batch_norm(net.conv2d(image, 4, {.kernel_h = 3, .kernel_w = 3}, "conv"), "bn1");
    const ValueId row = net.flatten(net.relu(image_out, "relu"), "flatten");
    return net.batch_norm(net.linear(row, 5, "fc"), "bn2");
  };
  const InferenceGraph inference = inference_graph(spec, build);
  ASSERT_EQ(inference.folds.size(), 2U);
  EXPECT_EQ(inference.folds[1].bias, "fc.bias");
  EXPECT_EQ(inference.folds[1].folded_bias, "fc.bias.folded");
  // Two channels of two weights: scale / √variance is 2 and -1, ε is nothing.
  const Fold fold{.weights = "w",
                  .bias = "b",
                  .scale = "scale",
                  .shift = "shift",
                  .mean = "mean",
                  .variance = "variance",
                  .folded_weights = "w.folded",
                  .folded_bias = "b.folded"};
  const std::map<std::string, std::vector<double>> values = {
      {"w", {1.0, 2.0, 3.0, 4.0}}, {"b", {5.0, 6.0}},    {"scale", {4.0, -3.0}},
      {"shift", {0.5, 0.25}},      {"mean", {1.0, 8.0}}, {"variance", {4.0, 9.0}}};
  const FoldedValues folded =
      fold_values(fold, [&](const std::string& name) { return values.at(name); });
  EXPECT_EQ(folded.weights, (std::vector<double>{2.0, 4.0, -3.0, -4.0}));
  EXPECT_EQ(folded.bias, (std::vector<double>{8.5, 2.25}));
}

TEST(FoldNorms, WhatOthersReadStaysAsItIs) {
  const StepSpec spec = toy_networks()[0].spec;
  const BuildNetwork build = [](NetworkBuilder& net, ValueId image) {
    const ValueId conv = net.conv2d(image, 4, {.bias = false}, "conv");
    const ValueId sum = net.add(net.batch_norm(conv, "bn"), conv, "add");
    return net.flatten(net.global_average_pool(sum, "pool"), "flatten");
  };
  const InferenceGraph inference = inference_graph(spec, build);
  EXPECT_TRUE(inference.folds.empty());
  EXPECT_EQ(count(inference.graph, OpKind::bn_apply), 1);
}

class InferencePlan : public ::testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] PlanRequest request() const {
    PlanRequest made;
    made.backend = GetParam();
    return made;
  }
  std::unique_ptr<Device> device_ = make_cpu_device();
};

TEST_P(InferencePlan, EveryConvolutionBringsItsBiasAndActivation) {
  for (const char* model : {"resnet18", "resnet50", "mobilenet_v2"}) {
    const InferenceRunner runner(*device_, request(), small_spec(model));
    const Graph& graph = *runner.plan().graph;
    std::int64_t convolutions = 0;
    for (const Step& step : runner.plan().steps) {
      if (step.is_reorder()) continue;
      const Node& first = graph.node(step.nodes[0]);
      // None is left for a step of its own, be it a convolution's or that behind a block's sum.
      EXPECT_FALSE(first.kind == OpKind::activation || first.kind == OpKind::bias)
          << model << ' ' << step.layer;
      if (first.kind != OpKind::conv2d) continue;
      ++convolutions;
      EXPECT_GE(step.nodes.size(), 2U) << model << ' ' << step.layer;
    }
    EXPECT_EQ(convolutions, count(graph, OpKind::conv2d)) << model;
  }
}

TEST_P(InferencePlan, WeightsAreConvertedOutsideTheSteps) {
  const StepSpec spec = small_spec("resnet18");
  const InferenceRunner runner(*device_, request(), spec);
  PlanRequest every_time = request();
  every_time.disabled_passes = {"constants"};
  const InferenceRunner other(*device_, every_time, spec);
  EXPECT_TRUE(other.plan().setup.empty());
  EXPECT_EQ(runner.plan().setup.size() + runner.plan().steps.size(), other.plan().steps.size());
  for (const Step& step : runner.plan().steps) {
    if (!step.is_reorder()) continue;
    const Value& value = runner.plan().graph->value(runner.plan().form(step.inputs[0]).value);
    EXPECT_NE(value.role, Role::parameter) << value.name;
  }
  // The library has its own formats of weights.
  EXPECT_EQ(runner.plan().setup.empty(), std::string(GetParam()) == "native");
}

TEST_P(InferencePlan, NewWeightsAreSeenByTheNextRun) {
  const StepSpec spec = small_spec("resnet18");
  InferenceRunner runner(*device_, request(), spec);
  runner.prepare(7);
  runner.write_batch(random_pixels(spec));
  runner.run();
  const std::vector<double> before = runner.logits();
  runner.run();
  EXPECT_EQ(runner.logits(), before);
  runner.write_weights(perturbed_weights);
  runner.run();
  EXPECT_NE(runner.logits(), before);
  EXPECT_EQ(runner.logits(), inferred_logits(*device_, GetParam(), spec));
}

// The plans of a session share its scratch memory, where each keeps its converted weights.
TEST_P(InferencePlan, PlansOfOneSessionTakeTurns) {
  Session session(*device_);
  PlanRequest once = request();
  once.constant_weights = true;
  std::vector<InferenceGraph> graphs;
  std::vector<Session::PlanId> plans;
  for (const std::int64_t batch : {2, 1}) {
    graphs.push_back(inference_graph(small_spec("resnet18", batch)));
    plans.push_back(session.add(plan_for(graphs.back().graph, once, *device_)));
  }
  session.prepare();
  const auto values_of = [&](const std::string& name) {
    const auto& parameters = graphs[0].parameters;
    return perturbed_weights(
        *std::find_if(parameters.begin(), parameters.end(),
                      [&](const Parameter& parameter) { return parameter.name == name; }));
  };
  const auto write = [&](const std::string& name, const std::vector<double>& values) {
    const std::vector<float> floats(values.begin(), values.end());
    session.write(name, std::as_bytes(std::span(floats)));
    device_->synchronize();
  };
  for (const Fold& fold : graphs[0].folds) {
    const FoldedValues folded = fold_values(fold, values_of);
    write(fold.folded_weights, folded.weights);
    write(fold.folded_bias, folded.bias);
  }
  for (const char* name : {"fc.weight", "fc.bias"}) write(name, values_of(name));
  const std::vector<double> expected =
      inferred_logits(*device_, GetParam(), small_spec("resnet18", 2));
  const std::vector<std::uint8_t> pixels = random_pixels(small_spec("resnet18", 2));
  session.write(kImages, std::as_bytes(std::span(pixels)));
  for (int turn = 0; turn < 3; ++turn) {
    for (std::size_t i = 0; i < plans.size(); ++i) {
      session.run(plans[i]);
      const std::vector<double> logits = session.read_value(plans[i], graphs[i].logits);
      EXPECT_LT(relative_error(logits, std::span(expected).first(logits.size())), kFloatTolerance);
    }
  }
}

TEST_P(InferencePlan, RunsOnADeviceThatQueues) {
  const StepSpec spec = small_spec("mobilenet_v2");
  const std::unique_ptr<Device> queued = make_queued_device();
  EXPECT_EQ(inferred_logits(*queued, GetParam(), spec),
            inferred_logits(*device_, GetParam(), spec));
}

TEST_P(InferencePlan, TheWeightsOfATrainingAreTaken) {
  const StepSpec spec = small_spec("mobilenet_v2");
  StepRunner training(*device_, request());
  const Session::PlanId plan = training.add_evaluation(spec);
  training.prepare(5);
  InferenceRunner runner(*device_, request(), spec);
  runner.prepare(6);
  runner.load(training.read_weights());
  const std::vector<std::uint8_t> pixels = random_pixels(spec);
  const std::vector<std::int32_t> labels(static_cast<std::size_t>(spec.batch), 0);
  Batch batch;
  batch.pixels = pixels;
  batch.labels = labels;
  batch.rows = spec.batch;
  training.write_batch(batch);
  training.session().run(plan);
  runner.write_batch(pixels);
  runner.run();
  EXPECT_LT(
      relative_error(runner.logits(), training.session().read_value(plan, training.logits(plan))),
      kFloatTolerance);
}

// Trained weights through the whole way: no norms to fold, but weights to convert.
TEST_P(InferencePlan, StoredOutputsOfSqueezeNetComeOut) {
  const fs::path folder = testing::test_data() / "squeezenet1_1";
  const fs::path weights = folder / "squeezenet1_1-imagenet.safetensors";
  if (!fs::exists(weights)) {
    GTEST_SKIP() << "no SqueezeNet weights in " << folder << "; set RIDGELINE_TEST_DATA";
  }
  Graph graph;
  const ModelConfig config = default_config("squeezenet1_1");
  const ValueId image = graph.add_value("image", {Shape{1, 3, 224, 224}, DType::f32}, Role::input);
  NetworkBuilder builder(graph, false, config.init, DType::f32);
  const ValueId built = find_model("squeezenet1_1").build(builder, image, config);
  graph.mark_output(built);
  const FoldResult folded = fold_norms(graph);
  const ValueId logits = folded.value_of[static_cast<std::size_t>(built)];
  PlanRequest once = request();
  once.constant_weights = true;
  Session session(*device_);
  const Session::PlanId plan = session.add(plan_for(folded.graph, once, *device_));
  session.prepare();
  const WeightFile file = open_weights(weights);
  for (const WeightMatch::Pair& pair :
       match_weights(builder.parameters(), file, {.model = "squeezenet1_1"}).pairs) {
    const std::vector<float> values = pair.tensor->to_float();
    session.write(pair.parameter, std::as_bytes(std::span(values)));
    device_->synchronize();
  }
  for (const char* number : {"0", "1", "2"}) {
    const fs::path set = folder / "test_data_set" / number;
    const std::vector<float> input = testing::read_npy(set / "input_0.npy");
    const std::vector<float> expected = testing::read_npy(set / "output_0.npy");
    session.write("image", std::as_bytes(std::span(input)));
    session.run(plan);
    const std::vector<double> output = session.read_value(plan, logits);
    EXPECT_LT(testing::worst_difference(output, expected), 1e-3) << "set " << number;
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, InferencePlan, ::testing::Values("native", "onednn"),
                         [](const auto& instance) { return std::string(instance.param); });

}  // namespace
}  // namespace ridgeline
