// Every op's gradient rule and gradient loops against central differences of its forward loops, all
// in double, over the case list.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "base/philox.h"
#include "graph/autodiff.h"
#include "support/case_names.h"
#include "support/host_values.h"

namespace ridgeline::testing {
namespace {

// A case can be checked when a gradient flows through each of its nodes. bn_apply takes the
// gradient through the statistics along, so these must then be made inside the case.
bool is_differentiable(const OpCase& op_case) {
  const Graph& graph = op_case.graph;
  for (const Node& node : graph.nodes()) {
    if (node.phase != Phase::forward) return false;
    if (node.kind == OpKind::bn_statistics && graph.nodes().size() > 1) continue;
    if (op_def(node.kind).gradient == nullptr) return false;
    if (node.kind == OpKind::bn_apply) {
      const bool frozen = std::get<BatchNormAttributes>(node.attributes).frozen;
      if (frozen != (graph.value(node.inputs[1]).producer == kNoNode)) return false;
    }
  }
  return !op_case.big;
}

struct Param {
  const OpCase* op_case;
};

// GoogleTest prints a parameter with every failure.
void PrintTo(const Param& param, std::ostream* out) { *out << param.op_case->name; }

std::vector<Param> differentiable_cases() {
  std::vector<Param> cases;
  for (const OpCase& op_case : op_cases()) {
    if (is_differentiable(op_case)) cases.push_back({&op_case});
  }
  return cases;
}

// The case in double with its gradients: a scalar L = sum over outputs of seed * output, or the
// loss itself.
struct Differentiated {
  Graph graph;
  std::size_t forward_nodes = 0;
  std::vector<ValueId> wanted, gradients;
  std::vector<Seed> seeds;
};

Differentiated differentiated(const OpCase& op_case) {
  Differentiated d;
  // Seeds are inputs, and those come before the nodes: their ids are needed first.
  const Graph forward = in_double(op_case.graph);
  std::vector<ValueId> ends;
  for (const ValueId output : forward.outputs()) {
    const Value& value = forward.value(output);
    const OpKind kind = forward.node(value.producer).kind;
    // Of a loss only the loss, not the probabilities beside it; of a norm not its statistics.
    const bool first = output == forward.node(value.producer).outputs[0];
    const bool all = kind != OpKind::softmax_cross_entropy && kind != OpKind::layer_norm;
    if (is_float(value.spec.dtype) && (first || all)) ends.push_back(output);
  }
  for (const Value& value : forward.values()) {
    if (value.producer != kNoNode) continue;
    const ValueId id = d.graph.add_value(value.name, value.spec, value.role);
    if (is_float(value.spec.dtype) && value.role != Role::statistics) d.wanted.push_back(id);
  }
  const auto shift = static_cast<ValueId>(ends.size());
  const auto inputs = static_cast<ValueId>(op_case.data.size());
  const auto moved = [&](ValueId id) { return id < inputs ? id : id + shift; };
  for (const ValueId end : ends) {
    const ValueId seed =
        d.graph.add_value("seed" + std::to_string(end), forward.value(end).spec, Role::input);
    const NodeId producer = forward.value(end).producer;
    const bool loss = forward.node(producer).kind == OpKind::softmax_cross_entropy;
    d.seeds.push_back({moved(end), loss ? kNoValue : seed});
  }
  for (const Node& node : forward.nodes()) {
    std::vector<ValueId> node_inputs;
    for (const ValueId input : node.inputs) node_inputs.push_back(moved(input));
    d.graph.add_node(node.kind, node.attributes, node_inputs, node.layer, node.phase);
  }
  d.forward_nodes = d.graph.nodes().size();
  d.gradients = differentiate(d.graph, d.seeds, d.wanted);
  return d;
}

class OpGradient : public ::testing::TestWithParam<Param> {
 protected:
  void SetUp() override {
    case_ = GetParam().op_case;
    d_ = differentiated(*case_);
    PhiloxSequence random(1, RandomStream::synthetic, 0);
    values_ = make_inputs(*case_, d_.graph);
    for (std::size_t id = case_->data.size(); id < case_->data.size() + d_.seeds.size(); ++id) {
      values_[id] = HostValue(d_.graph.values()[id].spec);
      for (std::int64_t i = 0; i < values_[id].elements(); ++i) values_[id].set(i, random.normal());
    }
    (void)run_reference(d_.graph, values_, case_->state);
  }

  // L at the inputs as they are.
  double scalar(HostValues& values) const {
    StepState state = case_->state;
    for (std::size_t id = 0; id < d_.forward_nodes; ++id) {
      run_reference_node(d_.graph, static_cast<NodeId>(id), values, state);
    }
    double sum = 0;
    for (const Seed& seed : d_.seeds) {
      const HostValue& output = values[static_cast<std::size_t>(seed.value)];
      // A loss's gradients come multiplied by the loss scale.
      if (seed.gradient == kNoValue) return output.at(0) * case_->state.loss_scale;
      const HostValue& weight = values[static_cast<std::size_t>(seed.gradient)];
      for (std::int64_t i = 0; i < output.elements(); ++i) sum += output.at(i) * weight.at(i);
    }
    return sum;
  }

  // dL/dt along a direction of one input, by central differences.
  double difference(ValueId input, const std::vector<double>& direction) const {
    constexpr double kStep = 1e-5;
    HostValues moved(values_.begin(), values_.end());
    const HostValue& from = values_[static_cast<std::size_t>(input)];
    const auto at_distance = [&](double distance) {
      for (std::int64_t i = 0; i < from.elements(); ++i) {
        moved[static_cast<std::size_t>(input)].set(
            i, from.at(i) + distance * direction[static_cast<std::size_t>(i)]);
      }
      return scalar(moved);
    };
    return (at_distance(kStep) - at_distance(-kStep)) / (2 * kStep);
  }

  // Both sides for one direction; the tolerance is relative to what could have been summed up.
  void expect_equal(ValueId input, const HostValue& gradient,
                    const std::vector<double>& direction) const {
    double product = 0, magnitude = 0;
    for (std::int64_t i = 0; i < gradient.elements(); ++i) {
      product += gradient.at(i) * direction[static_cast<std::size_t>(i)];
      magnitude += std::abs(gradient.at(i) * direction[static_cast<std::size_t>(i)]);
    }
    EXPECT_NEAR(difference(input, direction), product, 1e-6 * (magnitude + 1.0))
        << "gradient with respect to " << d_.graph.value(input).name << "\n"
        << d_.graph.text();
  }

  const OpCase* case_ = nullptr;
  Differentiated d_;
  HostValues values_;
};

TEST_P(OpGradient, MatchesCentralDifferences) {
  PhiloxSequence random(2, RandomStream::synthetic, 0);
  for (std::size_t w = 0; w < d_.wanted.size(); ++w) {
    const ValueId input = d_.wanted[w];
    ASSERT_NE(d_.gradients[w], kNoValue) << "no gradient reaches " << d_.graph.value(input).name;
    const HostValue& gradient = values_[static_cast<std::size_t>(d_.gradients[w])];
    const auto count = static_cast<std::size_t>(gradient.elements());
    // A few random directions see every element; single elements tell which one is wrong.
    for (int i = 0; i < 3; ++i) {
      std::vector<double> direction(count);
      for (double& d : direction) d = 2 * random.uniform_double() - 1;
      expect_equal(input, gradient, direction);
    }
    for (std::size_t i = 0; i < std::min<std::size_t>(count, 12); ++i) {
      std::vector<double> direction(count);
      direction[count <= 12 ? i : random.below(count)] = 1;
      expect_equal(input, gradient, direction);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, OpGradient, ::testing::ValuesIn(differentiable_cases()),
                         [](const auto& p) { return test_name(p.param.op_case->name); });

TEST(OpGradientCoverage, EveryOpWithAGradientRuleIsChecked) {
  std::vector<char> checked(kOpKinds);
  for (const Param& param : differentiable_cases()) {
    for (const Node& node : param.op_case->graph.nodes()) {
      checked[static_cast<std::size_t>(node.kind)] = 1;
    }
  }
  for (int kind = 0; kind < kOpKinds; ++kind) {
    const OpDef& def = op_def(static_cast<OpKind>(kind));
    EXPECT_EQ(checked[static_cast<std::size_t>(kind)] != 0 || def.gradient == nullptr, true)
        << def.name << " has a gradient rule that no case checks";
  }
}

}  // namespace
}  // namespace ridgeline::testing
