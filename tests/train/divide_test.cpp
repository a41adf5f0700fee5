// Steps that are computed in parts: gradients accumulated over passes, and clipped by their norm.

#include "graph/divide.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "data/synthetic.h"
#include "train/trainer.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kDivideSide = 12;

Split divide_data() {
  return make_synthetic({.channels = 1,
                         .height = kDivideSide,
                         .width = kDivideSide,
                         .classes = 4,
                         .count = 22,
                         .test_count = 9,
                         .seed = 3});
}

TrainConfig divide_config(const std::string& model, const std::string& backend, DType dtype) {
  TrainConfig config;
  config.step.model.name = model;
  config.step.model.height = config.step.model.width = kDivideSide;
  config.step.model.classes = 4;
  config.step.batch = 8;
  config.step.dtype = dtype;
  config.step.optimizer = SgdAttributes{.momentum = 0.9};
  config.plan.backend = backend;
  config.learning_rate = 0.05;
  config.epochs = 3;
  config.seed = 1;
  return config;
}

template <typename T>
std::vector<double> weights_after(const TrainConfig& config, const Split& data) {
  Trainer trainer(config, data, make_cpu_device());
  TrainObserver silent;
  (void)trainer.train(silent);
  std::vector<double> all;
  for (const StepRunner::NamedTensor& tensor : trainer.runner().read_weights()) {
    const auto* values = reinterpret_cast<const T*>(tensor.bytes.data());
    all.insert(all.end(), values, values + tensor.bytes.size() / sizeof(T));
  }
  return all;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

// 22 samples in batches of 8: the last batch has 6. Passes of 3 divide both unevenly.
TEST(Divide, PassesOfABatchTrainAsTheWholeBatch) {
  const Split data = divide_data();
  for (const char* model : {"mlp", "mnist_cnn"}) {
    TrainConfig config = divide_config(model, "reference", DType::f64);
    const std::vector<double> whole = weights_after<double>(config, data);
    config.micro_batch = 3;
    const std::vector<double> parts = weights_after<double>(config, data);
    EXPECT_LT(largest_difference(whole, parts), 1e-13) << model;
    EXPECT_NE(whole, parts) << model << ": nothing was divided";
  }
}

TEST(Divide, NativePassesTrainAsTheWholeBatch) {
  const Split data = divide_data();
  TrainConfig config = divide_config("mnist_cnn", "native", DType::f32);
  const std::vector<double> whole = weights_after<float>(config, data);
  config.micro_batch = 3;
  EXPECT_LT(largest_difference(whole, weights_after<float>(config, data)), 1e-5);
}

TEST(Divide, AMicroBatchAsLargeAsTheBatchChangesNothing) {
  const Split data = divide_data();
  TrainConfig config = divide_config("mnist_cnn", "native", DType::f32);
  const std::vector<double> whole = weights_after<float>(config, data);
  config.micro_batch = 8;
  EXPECT_EQ(whole, weights_after<float>(config, data));
}

TEST(Divide, OneRankWithOnePassHasNoOpOfIt) {
  StepSpec spec;
  spec.model.name = "mnist_cnn";
  spec.divide.part = {.rows = spec.batch, .pass_rows = spec.batch, .batch_rows = spec.batch};
  const Graph graph = training_graph(spec).graph;
  for (const Node& node : graph.nodes()) {
    EXPECT_NE(node.kind, OpKind::accumulate);
    EXPECT_NE(node.kind, OpKind::all_reduce);
    EXPECT_NE(node.kind, OpKind::clip_norm);
  }
}

// The mask of a row is the same whichever part computes it.
TEST(Divide, DropoutOfAPartIsThatOfItsRows) {
  const BuildNetwork build = [](NetworkBuilder& builder, ValueId image) {
    return builder.linear(builder.flatten(builder.dropout(image, 0.5, "drop"), "flat"), 4, "fc");
  };
  const auto logits = [&](const char* backend, std::int64_t first, std::int64_t rows) {
    StepSpec spec;
    spec.model.height = spec.model.width = 5;
    spec.model.classes = 4;
    spec.batch = rows;
    const std::unique_ptr<Device> device = make_cpu_device();
    StepGraph step = training_graph(spec, build);
    const ValueId wanted = step.logits;
    step.graph.mark_output(wanted);
    Session session(*device);
    const Session::PlanId plan = session.add(plan_for(
        std::move(step.graph), {.backend = backend, .disabled_passes = {}, .cache = {}}, *device));
    session.prepare();
    std::vector<float> weights(4 * 25);
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i + 1);
    session.write("fc.weight", std::as_bytes(std::span(weights)));
    const std::vector<std::uint8_t> pixels(static_cast<std::size_t>(rows * 25), 255);
    session.write(kImages, std::as_bytes(std::span(pixels)));
    session.step_state() = {.seed = 5, .random_step = 2, .valid_rows = rows, .first_row = first};
    session.run(plan);
    return session.read_value(plan, wanted);
  };
  for (const char* backend : {"reference", "native"}) {
    const std::vector<double> whole = logits(backend, 0, 7), part = logits(backend, 3, 2);
    const std::vector<double> same(whole.begin() + 3 * 4, whole.begin() + 5 * 4);
    ASSERT_EQ(part.size(), same.size());
    for (std::size_t i = 0; i < part.size(); ++i) EXPECT_NEAR(part[i], same[i], 1e-3) << backend;
    EXPECT_NE(part, std::vector<double>(whole.begin(), whole.begin() + 2 * 4)) << backend;
  }
}

// Plain gradient descent moves the weights by the rate times the gradient: after clipping by at
// most the rate times the norm.
TEST(Divide, ClippedGradientsMoveTheWeightsNoFurtherThanTheNorm) {
  const Split data = divide_data();
  TrainConfig config = divide_config("mlp", "native", DType::f32);
  config.step.optimizer = SgdAttributes{};
  config.step.batch = 22;
  config.epochs = 1;
  config.learning_rate = 0.0;
  const std::vector<double> before = weights_after<float>(config, data);
  const auto moved = [&](double clip) {
    config.learning_rate = 1.0;
    config.step.clip_norm = clip;
    const std::vector<double> after = weights_after<float>(config, data);
    double squares = 0.0;
    for (std::size_t i = 0; i < after.size(); ++i) {
      squares += (after[i] - before[i]) * (after[i] - before[i]);
    }
    return std::sqrt(squares);
  };
  const double whole = moved(0.0);
  EXPECT_NEAR(moved(whole / 4.0), whole / 4.0, 1e-3 * whole);
  EXPECT_NEAR(moved(whole * 4.0), whole, 1e-5 * whole);
}

TEST(Divide, BadAmountsAreNamed) {
  const Split data = divide_data();
  const auto error_of = [&](const TrainConfig& config) -> std::string {
    try {
      (void)Trainer(config, data, make_cpu_device());
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::bad_input);
      return error.what();
    }
    return {};
  };
  TrainConfig config = divide_config("mlp", "native", DType::f32);
  config.micro_batch = -1;
  EXPECT_EQ(error_of(config), "micro-batch -1: must be at least 1");
  config.micro_batch = 2;
  config.full_batch = true;
  EXPECT_EQ(error_of(config),
            "--full-batch is one pass of one process: without --micro-batch and ranks");
  config = divide_config("mlp", "native", DType::f32);
  config.step.clip_norm = -2.0;
  EXPECT_EQ(error_of(config), "clip norm -2: must be above 0");
}

}  // namespace
}  // namespace ridgeline
