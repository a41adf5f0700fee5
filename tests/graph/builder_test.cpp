// What NetworkBuilder makes of its layers: parameters with their shapes in files, pools that need
// no windows of different sizes, auxiliary heads.

#include "graph/builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "train/step_graph.h"

namespace ridgeline {
namespace {

struct Built {
  Graph graph;
  NetworkBuilder builder;
  ValueId image;

  explicit Built(const Shape& shape, bool training = true)
      : builder(graph, training, InitScheme::pytorch, DType::f32),
        image(graph.add_value("images", {shape, DType::f32}, Role::input)) {}

  [[nodiscard]] const Parameter& parameter(const std::string& name) const {
    return *std::find_if(builder.parameters().begin(), builder.parameters().end(),
                         [&](const Parameter& p) { return p.name == name; });
  }
  [[nodiscard]] const Node& producer(ValueId value) const {
    return graph.node(graph.value(value).producer);
  }
};

TEST(BuilderTest, AConvolutionMayBeALinearInFiles) {
  Built net({2, 6, 4, 4});
  net.builder.conv2d(net.image, 24, {.file_shape = {24, 6}}, "block.3");
  EXPECT_EQ(net.parameter("block.3.weight").shape, (Shape{24, 6, 1, 1}));
  EXPECT_EQ(net.parameter("block.3.weight").file_shape, (Shape{24, 6}));
  EXPECT_EQ(net.parameter("block.3.bias").file_shape, (Shape{24}));
  net.builder.layer_scale(net.image, 1e-6, "block.layer_scale");
  EXPECT_EQ(net.parameter("block.layer_scale").shape, (Shape{6}));
  EXPECT_EQ(net.parameter("block.layer_scale").file_shape, (Shape{6, 1, 1}));
  EXPECT_EQ(net.parameter("block.layer_scale").init.amount, 1e-6);
}

TEST(BuilderTest, TheTwoAxesOfAConvolutionMayDiffer) {
  Built net({1, 3, 9, 9});
  const ValueId dst = net.builder.conv2d(
      net.image, 4, {.kernel_h = 1, .kernel_w = 7, .stride_h = 2, .pad_h = 0, .pad_w = 3}, "a");
  EXPECT_EQ(net.builder.shape(dst), (Shape{1, 4, 5, 9}));
  const Conv2dAttributes window{.kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_right = 2};
  const ValueId other = net.builder.conv2d(net.image, 4, {.window = window}, "b");
  EXPECT_EQ(net.builder.shape(other), (Shape{1, 4, 8, 9}));
}

TEST(BuilderTest, AdaptivePoolsAreAsPlainAsTheyCanBe) {
  Built net({1, 3, 8, 12});
  EXPECT_EQ(net.builder.adaptive_average_pool(net.image, 8, 12, "same"), net.image);
  const ValueId halves = net.builder.adaptive_average_pool(net.image, 4, 3, "halves");
  const auto& pool = std::get<PoolAttributes>(net.producer(halves).attributes);
  EXPECT_EQ(pool.kind, PoolKind::average);
  EXPECT_EQ(pool.kernel_h, 2);
  EXPECT_EQ(pool.stride_w, 4);
  const ValueId sevens = net.builder.adaptive_average_pool(net.image, 7, 7, "sevens");
  EXPECT_EQ(std::get<PoolAttributes>(net.producer(sevens).attributes).kind,
            PoolKind::adaptive_average);
  EXPECT_EQ(net.builder.shape(sevens), (Shape{1, 3, 7, 7}));
}

TEST(BuilderTest, EitherFactorMayBeBroadcast) {
  Built net({2, 3, 4, 4});
  const ValueId gate = net.builder.global_average_pool(net.image, "pool");
  const ValueId a = net.builder.multiply(gate, net.image, "scale");
  EXPECT_EQ(net.producer(a).inputs, (std::vector<ValueId>{net.image, gate}));
}

TEST(BuilderTest, StochasticDepthDropsSamplesInTrainingAlone) {
  Built training({2, 3, 4, 4}), evaluation({2, 3, 4, 4}, false);
  const ValueId dropped = training.builder.stochastic_depth(training.image, 0.2, "drop");
  EXPECT_TRUE(std::get<DropoutAttributes>(training.producer(dropped).attributes).per_sample);
  EXPECT_EQ(training.builder.stochastic_depth(training.image, 0.0, "first"), training.image);
  EXPECT_EQ(evaluation.builder.stochastic_depth(evaluation.image, 0.2, "drop"), evaluation.image);
}

TEST(BuilderTest, ANormWithoutAffineHasParametersThatAreNotTrained) {
  Built net({2, 3, 4, 4});
  net.builder.batch_norm(net.image, "bn", {.epsilon = 0.001, .momentum = 0.01, .affine = false});
  EXPECT_TRUE(net.parameter("bn.weight").frozen);
  EXPECT_TRUE(net.parameter("bn.bias").frozen);
  const auto statistics =
      std::count_if(net.graph.nodes().begin(), net.graph.nodes().end(),
                    [](const Node& node) { return node.kind == OpKind::bn_statistics; });
  EXPECT_EQ(statistics, 1) << "the norm itself still trains";
}

TEST(InitTest, TruncatedNormalsStayWithinTwo) {
  const Parameter wide{"w", {4000}, Role::parameter, {Init::Kind::truncated_normal, 1.5}};
  const std::vector<double> values = initial_values(wide, 3);
  EXPECT_EQ(values, initial_values(wide, 3));
  double largest = 0.0, sum = 0.0;
  for (const double value : values) {
    largest = std::max(largest, std::abs(value));
    sum += value;
  }
  EXPECT_LE(largest, 2.0);
  EXPECT_GT(largest, 1.9) << "nothing was cut off before";
  EXPECT_NEAR(sum / 4000, 0.0, 0.1);
  // Where nothing lies beyond, it is the normal distribution, number by number.
  Parameter narrow{"w", {50}, Role::parameter, {Init::Kind::truncated_normal, 0.02}};
  const std::vector<double> cut = initial_values(narrow, 3);
  narrow.init.kind = Init::Kind::normal;
  EXPECT_EQ(cut, initial_values(narrow, 3));
}

// A convolution with an auxiliary head of its own.
ValueId build_with_head(NetworkBuilder& builder, ValueId image) {
  const ValueId trunk = builder.conv2d(image, 4, {.kernel_h = 3, .kernel_w = 3}, "conv");
  const ValueId side = builder.batch_norm(trunk, "aux.bn");
  const ValueId pooled = builder.flatten(builder.global_average_pool(side, "aux.pool"), "aux.flat");
  builder.auxiliary(builder.linear(pooled, 10, "aux.fc"), 0.4);
  const ValueId flat = builder.flatten(trunk, "flatten");
  return builder.linear(flat, 10, "fc");
}

StepSpec small_spec() {
  StepSpec spec;
  spec.model.height = spec.model.width = 6;
  spec.batch = 3;
  return spec;
}

TEST(AuxiliaryHeadTest, AddsItsWeightedLossInTraining) {
  const StepGraph step = training_graph(small_spec(), build_with_head);
  std::vector<double> weights;
  for (const Node& node : step.graph.nodes()) {
    if (node.kind != OpKind::softmax_cross_entropy) continue;
    weights.push_back(std::get<LossAttributes>(node.attributes).weight);
  }
  EXPECT_EQ(weights, (std::vector<double>{1.0, 0.4}));
  EXPECT_EQ(step.graph.node(step.graph.value(step.loss).producer).kind, OpKind::add);
  EXPECT_NE(step.graph.find("aux.fc.weight.grad"), kNoValue);
  const ValueId shared = step.graph.find("conv.weight.grad");
  ASSERT_NE(shared, kNoValue) << "both losses train the trunk";
}

TEST(AuxiliaryHeadTest, IsNoPartOfEvaluationButOfTheParameters) {
  const StepGraph step = evaluation_graph(small_spec(), build_with_head);
  for (const Node& node : step.graph.nodes()) {
    EXPECT_FALSE(node.layer.starts_with("aux")) << node.layer;
  }
  EXPECT_EQ(step.graph.find("aux.fc.weight"), kNoValue);
  const auto is_named = [](const char* name) {
    return [name](const Parameter& p) { return p.name == name; };
  };
  const auto& parameters = step.parameters;
  const auto head = std::find_if(parameters.begin(), parameters.end(), is_named("aux.fc.weight"));
  ASSERT_NE(head, parameters.end());
  EXPECT_TRUE(head->auxiliary_head);
  EXPECT_EQ(parameters.size(), training_graph(small_spec(), build_with_head).parameters.size());
  const InferenceGraph inference = inference_graph(small_spec(), build_with_head);
  EXPECT_EQ(inference.parameters.size(), parameters.size());
  EXPECT_EQ(inference.graph.find("aux.bn.weight"), kNoValue);
}

}  // namespace
}  // namespace ridgeline
