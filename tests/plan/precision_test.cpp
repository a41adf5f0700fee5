// Other precisions than f32: the numbers themselves, the precision pass, the loss scale.

#include "plan/precision.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/half.h"
#include "support/toy_networks.h"

namespace ridgeline {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Half, RoundsToTheNearestEven) {
  const auto bf16 = [](double x) { return widened(narrowed<BFloat16>(x)); };
  const auto f16 = [](double x) { return widened(narrowed<Float16>(x)); };
  EXPECT_EQ(bf16(1.0 + 0x1p-8), 1.0);
  EXPECT_EQ(bf16(1.0 + 0x1p-8 + 0x1p-20), 1.0 + 0x1p-7);
  EXPECT_EQ(bf16(1.0 + 3 * 0x1p-8), 1.0 + 0x1p-6);
  EXPECT_EQ(bf16(-3.0), -3.0);
  EXPECT_EQ(bf16(1e39), kInfinity);
  EXPECT_EQ(f16(1.0 + 0x1p-11), 1.0);
  EXPECT_EQ(f16(1.0 + 3 * 0x1p-11), 1.0 + 0x1p-9);
  EXPECT_EQ(f16(65504.0), 65504.0);
  EXPECT_EQ(f16(65519.0), 65504.0);
  EXPECT_EQ(f16(65520.0), kInfinity);
  EXPECT_EQ(f16(-65520.0), -kInfinity);
  EXPECT_EQ(f16(0x1p-24), 0x1p-24);
  EXPECT_EQ(f16(0x1p-25), 0.0);
  EXPECT_EQ(f16(3 * 0x1p-25), 0x1p-23);
  EXPECT_TRUE(std::signbit(f16(-0.0)));
  EXPECT_TRUE(std::isnan(f16(std::nan(""))) && std::isnan(bf16(std::nan(""))));
}

TEST(Half, EveryNumberComesBackAsItself) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const double f16 = widened(Float16{half}), bf16 = widened(BFloat16{half});
    if (!std::isnan(f16)) {
      ASSERT_EQ(narrowed<Float16>(f16).bits, half);
    }
    if (!std::isnan(bf16)) {
      ASSERT_EQ(narrowed<BFloat16>(bf16).bits, half);
    }
  }
}

// The short ways from and to a float give what the long ones give.
TEST(Half, ShortConversionsAreTheSame) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const double wide = widened(Float16{half});
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(float_of(Float16{half})));
      continue;
    }
    ASSERT_EQ(std::bit_cast<std::uint32_t>(float_of(Float16{half})),
              std::bit_cast<std::uint32_t>(static_cast<float>(wide)));
  }
  // Floats of all sizes, with all patterns of the digits that are lost.
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 4099) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    ASSERT_EQ(f16_of(value).bits, narrowed<Float16>(value).bits) << value;
    ASSERT_EQ(bf16_of(value).bits, narrowed<BFloat16>(value).bits) << value;
  }
  for (const float value : {65519.9F, 65520.0F, 0x1p-14F, 0x1.ffcp-15F, 0x1.ffep-15F, 0x1p-25F}) {
    EXPECT_EQ(f16_of(value).bits, narrowed<Float16>(value).bits) << value;
  }
}

class PrecisionPass : public ::testing::TestWithParam<std::size_t> {
 protected:
  [[nodiscard]] Graph graph_in(Precision precision) const {
    const ToyNetwork network = toy_networks()[GetParam()];
    StepSpec spec = network.spec;
    spec.precision = precision;
    return training_graph(spec, network.build).graph;
  }
};

TEST_P(PrecisionPass, ProductsAreNarrowAndSumsAreWide) {
  const Graph graph = graph_in(Precision::bf16);
  const auto type = [&](ValueId id) { return graph.value(id).spec.dtype; };
  int products = 0;
  for (const Node& node : graph.nodes()) {
    switch (node.kind) {
      case OpKind::conv2d:
      case OpKind::conv2d_backward_data:
      case OpKind::linear:
      case OpKind::linear_backward_weights:
        ++products;
        for (const ValueId input : node.inputs) EXPECT_EQ(type(input), DType::bf16) << node.layer;
        EXPECT_EQ(type(node.outputs[0]), DType::bf16);
        break;
      case OpKind::bn_statistics:
      case OpKind::bn_backward_reduce:
      case OpKind::softmax_cross_entropy:
      case OpKind::bias_backward:
        for (const ValueId output : node.outputs) EXPECT_EQ(type(output), DType::f32);
        break;
      default:
        break;
    }
  }
  EXPECT_GT(products, 4);
  for (const Value& value : graph.values()) {
    const bool master = value.role == Role::parameter || value.role == Role::statistics ||
                        value.role == Role::optimizer_state;
    if (master) {
      EXPECT_EQ(value.spec.dtype, DType::f32) << value.name;
    }
  }
}

TEST_P(PrecisionPass, EveryWeightIsCastOnceAndFirst) {
  const Graph graph = graph_in(Precision::bf16);
  std::vector<ValueId> seen;
  bool other = false;
  for (const Node& node : graph.nodes()) {
    const bool weights =
        node.kind == OpKind::cast && graph.value(node.inputs[0]).role == Role::parameter;
    if (weights) {
      EXPECT_FALSE(other) << "weights are cast before anything else";
      EXPECT_EQ(std::count(seen.begin(), seen.end(), node.inputs[0]), 0);
      seen.push_back(node.inputs[0]);
    }
    other = other || !weights;
  }
  EXPECT_GT(seen.size(), 2U);
}

TEST_P(PrecisionPass, Tf32ChangesNoType) {
  const Graph exact = graph_in(Precision::fp32), fast = graph_in(Precision::tf32);
  EXPECT_FALSE(exact.allows_tf32());
  EXPECT_TRUE(fast.allows_tf32());
  ASSERT_EQ(exact.values().size(), fast.values().size());
  for (std::size_t id = 0; id < exact.values().size(); ++id) {
    const ValueId same = fast.find(exact.values()[id].name);
    ASSERT_NE(same, kNoValue) << exact.values()[id].name;
    EXPECT_EQ(exact.values()[id].spec, fast.value(same).spec);
  }
}

TEST_P(PrecisionPass, InFp16EveryUpdateComesAfterTheGuard) {
  const Graph graph = graph_in(Precision::fp16);
  NodeId guard = kNoNode;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    if (node.kind == OpKind::overflow_guard) {
      EXPECT_EQ(guard, kNoNode) << "one guard looks at everything";
      guard = id;
    }
    const bool updates = node.kind == OpKind::sgd || node.kind == OpKind::adam;
    if (updates) {
      EXPECT_EQ(graph.value(node.inputs[1]).producer, guard) << node.layer;
    }
    if (node.kind == OpKind::bn_update_running) {
      EXPECT_EQ(graph.value(node.inputs[2]).producer, guard) << node.layer;
      EXPECT_EQ(graph.value(node.inputs[3]).producer, guard) << node.layer;
    }
  }
  EXPECT_NE(guard, kNoNode);
}

INSTANTIATE_TEST_SUITE_P(Toys, PrecisionPass, ::testing::Values(0, 1, 2),
                         [](const auto& instance) { return toy_networks()[instance.param].name; });

TEST(LossScale, FallsAfterAnOverflowAndRisesAfterManyStepsWithout) {
  const OverflowGuardAttributes attributes{.interval = 3};
  StepState state{.optimizer_step = 1, .loss_scale = 1024.0};
  note_overflow(attributes, true, state);
  EXPECT_EQ(state.overflow, 1);
  EXPECT_EQ(state.gradient_scale, 1024.0) << "this step's gradients carry the former scale";
  EXPECT_EQ(state.loss_scale, 512.0);
  EXPECT_EQ(state.updates(), 0) << "Adam's t does not count the skipped step";
  for (int step = 0; step < 3; ++step) note_overflow(attributes, false, state);
  EXPECT_EQ(state.overflow, 0);
  EXPECT_EQ(state.gradient_scale, 512.0);
  EXPECT_EQ(state.loss_scale, 1024.0);
  EXPECT_EQ(state.overflows, 1);
}

}  // namespace
}  // namespace ridgeline
