#include "graph/graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backends/registry.h"
#include "base/error.h"
#include "base/philox.h"
#include "graph/autodiff.h"
#include "support/toy_networks.h"
#include "train/step_graph.h"

namespace ridgeline {
namespace {

std::int64_t parameter_count(const StepGraph& step) {
  std::int64_t count = 0;
  for (const Parameter& parameter : step.parameters) {
    if (parameter.role == Role::parameter) count += parameter.shape.elements();
  }
  return count;
}

StepSpec zoo_spec(const char* model) {
  StepSpec spec;
  spec.model.name = model;
  spec.batch = 4;
  return spec;
}

TEST(ModelTest, ParameterCountsAreThoseOfTheStudies) {
  EXPECT_EQ(parameter_count(training_graph(zoo_spec("mlp"))), 7960);
  EXPECT_EQ(parameter_count(training_graph(zoo_spec("mnist_cnn"))), 53866);
}

TEST(ModelTest, OptionsChangeTheNetwork) {
  StepSpec spec = zoo_spec("mlp");
  spec.model.options = {{"hidden", "20"}, {"depth", "2"}};
  EXPECT_EQ(parameter_count(training_graph(spec)), 784 * 20 + 20 + 20 * 20 + 20 + 20 * 10 + 10);
  spec.model.options = {{"hidden", "30,20"}};
  EXPECT_EQ(parameter_count(training_graph(spec)), 784 * 30 + 30 + 30 * 20 + 20 + 20 * 10 + 10);
  spec = zoo_spec("mnist_cnn");
  spec.model.options = {{"filters", "4,6"}, {"kernel", "5"}, {"hidden", "7"}, {"blocks", "1"}};
  EXPECT_EQ(parameter_count(training_graph(spec)),
            4 * 25 + 4 + 6 * 4 * 25 + 6 + 6 * 6 * 25 + 6 + 96 * 7 + 7 + 70 + 10);
}

TEST(ModelTest, WrongNamesAndOptionsAreRefusedWithASuggestion) {
  const auto message = [](StepSpec spec) -> std::string {
    try {
      (void)training_graph(spec);
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), 2);
      return error.what();
    }
    return "accepted";
  };
  EXPECT_NE(message(zoo_spec("mnist_cn")).find("mnist_cnn"), std::string::npos);
  StepSpec spec = zoo_spec("mlp");
  spec.model.options = {{"hiden", "10"}};
  EXPECT_NE(message(spec).find("hidden"), std::string::npos);
  spec.model.options = {{"hidden", "ten"}};
  EXPECT_NE(message(spec).find("'ten'"), std::string::npos);
  spec.model.options = {{"activation", "rely"}};
  EXPECT_NE(message(spec).find("relu"), std::string::npos);
  spec = zoo_spec("mnist_cnn");
  spec.model.height = spec.model.width = 4;
  EXPECT_NE(message(spec).find("conv2"), std::string::npos) << "the layer is named";
}

TEST(InitTest, ValuesDependOnSeedAndNameOnly) {
  const Parameter a{"a", {50, 40}, Role::parameter, {Init::Kind::normal, 0.5}};
  const Parameter b{"b", {50, 40}, Role::parameter, {Init::Kind::normal, 0.5}};
  EXPECT_EQ(initial_values(a, 1), initial_values(a, 1));
  EXPECT_NE(initial_values(a, 1), initial_values(a, 2));
  EXPECT_NE(initial_values(a, 1), initial_values(b, 1));
  double sum = 0, squares = 0;
  for (const double value : initial_values(a, 3)) {
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / 2000, 0.0, 0.05);
  EXPECT_NEAR(std::sqrt(squares / 2000), 0.5, 0.03);
  const Parameter uniform{"u", {2000}, Role::parameter, {Init::Kind::uniform, 0.25}};
  const std::vector<double> values = initial_values(uniform, 1);
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  EXPECT_GE(*low, -0.25);
  EXPECT_LT(*high, 0.25);
  EXPECT_LT(*low, -0.24);
  EXPECT_GT(*high, 0.24);
}

TEST(PhiloxTest, GivesTheKnownAnswersOfThePaper) {
  // Known-answer vectors of Random123 for philox4x32-10.
  EXPECT_EQ(philox(0, 0, 0), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint64_t ones = ~std::uint64_t{0};
  EXPECT_EQ(philox(ones, ones, ones),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(AutodiffTest, FirstLayerGetsNoDataGradient) {
  const StepGraph step = training_graph(zoo_spec("mnist_cnn"));
  int data = 0, weights = 0;
  for (const Node& node : step.graph.nodes()) {
    data += node.kind == OpKind::conv2d_backward_data ? 1 : 0;
    weights += node.kind == OpKind::conv2d_backward_weights ? 1 : 0;
  }
  EXPECT_EQ(data, 1);
  EXPECT_EQ(weights, 2);
}

TEST(AutodiffTest, GradientsOfAValueUsedTwiceAreAdded) {
  Graph graph;
  const ValueId x = graph.add_value("x", {Shape{2, 3}, DType::f64}, Role::parameter);
  const ValueId seed = graph.add_value("seed", {Shape{2, 3}, DType::f64}, Role::input);
  const ValueId y = graph.add_node(OpKind::add, {}, {x, x}, "twice", Phase::forward)[0];
  const Seed start{y, seed};
  const std::vector<ValueId> gradients = differentiate(graph, {&start, 1}, {&x, 1});
  const Node& sum = graph.node(graph.value(gradients[0]).producer);
  EXPECT_EQ(sum.kind, OpKind::add);
  EXPECT_EQ(sum.inputs, (std::vector<ValueId>{seed, seed}));
}

TEST(AutodiffTest, NothingFlowsToWhatHasNoInfluence) {
  Graph graph;
  const ValueId a = graph.add_value("a", {Shape{2, 3}, DType::f64}, Role::parameter);
  const ValueId b = graph.add_value("b", {Shape{2, 3}, DType::f64}, Role::parameter);
  const ValueId seed = graph.add_value("seed", {Shape{2, 3}, DType::f64}, Role::input);
  const ValueId y =
      graph.add_node(OpKind::activation, ActivationAttributes{}, {a}, "", Phase::forward)[0];
  const Seed start{y, seed};
  const std::array<ValueId, 2> wanted = {a, b};
  const std::vector<ValueId> gradients = differentiate(graph, {&start, 1}, wanted);
  EXPECT_NE(gradients[0], kNoValue);
  EXPECT_EQ(gradients[1], kNoValue);
}

// Whole networks in double: the gradient of every parameter tensor against central differences.
class NetworkGradientTest : public testing::TestWithParam<ToyNetwork> {};

TEST_P(NetworkGradientTest, MatchesFiniteDifferences) {
  ToyNetwork network = GetParam();
  network.spec.dtype = DType::f64;
  network.spec.optimizer = SgdAttributes{};
  const StepGraph step = training_graph(network.spec, network.build);
  const std::unique_ptr<Device> device = make_cpu_device();
  Session session(*device);
  const Session::PlanId plan = session.add(make_plan(
      step.graph, {.providers = {&reference_backend}, .preferred = {}, .disabled_passes = {}}));
  session.prepare();
  fill_state(session, step, network.spec, 7);
  session.step_state().learning_rate = 0.0;

  const auto loss = [&] {
    session.run(plan);
    return session.read_value(plan, step.loss)[0];
  };
  ASSERT_GT(loss(), 0.0);
  PhiloxSequence random(5, RandomStream::synthetic, 0);
  for (const Parameter& parameter : step.parameters) {
    if (parameter.role != Role::parameter) continue;
    std::vector<double> values(static_cast<std::size_t>(parameter.shape.elements()));
    const auto bytes = std::as_writable_bytes(std::span(values));
    session.read(parameter.name, bytes);
    const std::vector<double> original = values;
    std::vector<double> gradient(values.size());
    (void)loss();
    session.read(gradient_name(parameter.name), std::as_writable_bytes(std::span(gradient)));

    for (int probe = 0; probe < 2; ++probe) {
      const auto at = static_cast<std::size_t>(random.below(values.size()));
      const double step_size = 1e-6;
      const auto loss_at = [&](double value) {
        values = original;
        values[at] = value;
        session.write(parameter.name, bytes);
        return loss();
      };
      const double numeric =
          (loss_at(original[at] + step_size) - loss_at(original[at] - step_size)) / (2 * step_size);
      EXPECT_NEAR(gradient[at], numeric, 1e-6 + 1e-4 * std::abs(numeric))
          << parameter.name << "[" << at << "]";
    }
    session.write(parameter.name, std::as_bytes(std::span(original)));
  }
}

INSTANTIATE_TEST_SUITE_P(Toys, NetworkGradientTest, testing::ValuesIn(toy_networks()),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace ridgeline
