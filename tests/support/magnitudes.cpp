// How large each result would be had nothing cancelled: the reference run on inputs whose signs are
// chosen so that every sum grows. For a convolution that is the sum of |src| * |weights|.

#include <algorithm>
#include <cmath>

#include "support/host_values.h"

namespace ridgeline::testing {
namespace {

void each(HostValue& value, const auto& change) {
  const std::int64_t count = value.elements();
  for (std::int64_t i = 0; i < count; ++i) value.set(i, change(i));
}

HostValue absolute(const HostValue& value) {
  HostValue made = value;
  if (is_float(value.spec.dtype)) each(made, [&](auto i) { return std::abs(value.at(i)); });
  return made;
}

double largest(const HostValue& value) {
  double result = 0;
  for (std::int64_t i = 0; i < value.elements(); ++i) {
    result = std::max(result, std::abs(value.at(i)));
  }
  return result;
}

bool is_smooth(const Attributes& attributes) {
  const ActivationKind kind = std::get<ActivationAttributes>(attributes).kind;
  return kind != ActivationKind::relu && kind != ActivationKind::relu6 &&
         kind != ActivationKind::leaky_relu;
}

class Magnitudes {
 public:
  Magnitudes(const Graph& graph, const HostValues& exact, StepState state)
      : graph_(graph), exact_(exact), state_(state), made_(exact.size()) {
    // Optimizers subtract the rate times the gradient.
    state_.learning_rate = -state_.learning_rate;
    for (std::size_t id = 0; id < exact.size(); ++id) {
      if (graph.values()[id].producer == kNoNode) made_[id] = absolute(exact[id]);
    }
  }

  HostValues run() && {
    for (std::size_t id = 0; id < graph_.nodes().size(); ++id) node(static_cast<NodeId>(id));
    return std::move(made_);
  }

 private:
  void node(NodeId id) {
    const Node& node = graph_.node(id);
    for (const ValueId output : node.outputs) at(output) = HostValue(graph_.value(output).spec);
    switch (node.kind) {
      case OpKind::activation:
        return activation(node);
      case OpKind::activation_backward:
        return activation_backward(node);
      case OpKind::softmax_cross_entropy:
        return loss(node);
      case OpKind::softmax_cross_entropy_backward:
        return loss_backward(node);
      case OpKind::layer_norm:
        return layer_norm(id);
      case OpKind::layer_norm_backward:
        return layer_norm_backward(id);
      default:
        linear(id);
    }
    if (node.kind == OpKind::bn_statistics) variance(node);
  }

  // Runs the reference with the signs that the op's subtractions ask for.
  void linear(NodeId id) {
    const Node& node = graph_.node(id);
    HostValues inputs(made_.size());
    for (const ValueId input : node.inputs) inputs[static_cast<std::size_t>(input)] = at(input);
    const auto negate = [&](std::size_t input) {
      HostValue& value = inputs[static_cast<std::size_t>(node.inputs[input])];
      each(value, [&](auto i) { return -value.at(i); });
    };
    const auto exact = [&](std::size_t input) {
      const auto value = static_cast<std::size_t>(node.inputs[input]);
      inputs[value] = exact_[value];
    };
    switch (node.kind) {
      case OpKind::bn_apply:
        negate(1), exact(2);
        break;
      case OpKind::bn_backward_reduce:
        negate(2), exact(3);
        break;
      case OpKind::bn_backward_apply:
        negate(2), exact(3), negate(5), negate(6);
        break;
      case OpKind::layer_norm_backward:
        negate(2), exact(3);
        break;
      case OpKind::metrics:
        exact(2);
        break;
      case OpKind::adam:
        exact(3);
        break;
      default:
        break;
    }
    if (node.kind == OpKind::normalize) {
      Graph changed = with_negative_mean(node);
      HostValues few(changed.values().size());
      for (std::size_t i = 0; i < node.inputs.size(); ++i) few[i] = at(node.inputs[i]);
      run_reference(changed, few, state_);
      at(node.outputs[0]) = few.back();
      return;
    }
    run_reference_node(graph_, id, inputs, state_);
    for (const ValueId output : node.outputs) {
      const auto value = static_cast<std::size_t>(output);
      const bool number = is_float(exact_[value].spec.dtype);
      if (output == node.outputs[0]) signed_ = inputs[value];
      made_[value] = number ? absolute(inputs[value]) : exact_[value];
    }
  }

  Graph with_negative_mean(const Node& node) const {
    auto attributes = std::get<NormalizeAttributes>(node.attributes);
    for (double& mean : attributes.mean) mean = -std::abs(mean);
    Graph graph;
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) {
      inputs.push_back(
          graph.add_value(graph_.value(input).name, graph_.value(input).spec, Role::input));
    }
    graph.add_node(node.kind, attributes, inputs, "", node.phase);
    return graph;
  }

  // No activation's slope exceeds 1.1 but hard_swish's, 1.5 just below 3, for which the 1 makes up;
  // the smooth ones also round numbers of size 1.
  void activation(const Node& node) {
    const HostValue& src = at(node.inputs[0]);
    const double own = is_smooth(node.attributes) ? 1.0 : 0.0;
    each(at(node.outputs[0]), [&](auto i) { return 1.1 * src.at(i) + own; });
  }

  void activation_backward(const Node& node) {
    const HostValue& diff_dst = at(node.inputs[0]);
    const HostValue& kept = at(node.inputs[1]);
    const bool smooth = is_smooth(node.attributes);
    each(at(node.outputs[0]),
         [&](auto i) { return diff_dst.at(i) * (smooth ? 1.1 + kept.at(i) : 1.0); });
  }

  // exp turns an absolute error of the logit into a relative one of the probability.
  void loss(const Node& node) {
    const double logits = 1.0 + 2.0 * largest(at(node.inputs[0]));
    const HostValue& probabilities = exact(node.outputs[1]);
    each(at(node.outputs[0]), [&](auto) { return logits; });
    each(at(node.outputs[1]), [&](auto i) { return probabilities.at(i) * logits; });
  }

  void loss_backward(const Node& node) {
    const HostValue& probabilities = at(node.inputs[0]);
    const double factor = state_.loss_scale / static_cast<double>(state_.valid_rows);
    each(at(node.outputs[0]), [&](auto i) { return (probabilities.at(i) + 1.0) * factor; });
  }

  // Of given values the variance itself, so that its cancellation is the kernel's to avoid; of
  // computed ones the mean square of their magnitudes, since their errors pass through.
  void variance(const Node& node) {
    const HostValue& exact_variance = exact(node.outputs[1]);
    HostValue& result = at(node.outputs[1]);
    if (graph_.value(node.inputs[0]).producer == kNoNode) {
      each(result, [&](auto c) { return exact_variance.at(c); });
      return;
    }
    const HostValue& mean = at(node.outputs[0]);
    const HostValue spread = result;
    each(result, [&](auto c) { return spread.at(c) + mean.at(c) * mean.at(c); });
  }

  // Where an element's channel and statistics stand.
  struct NormPlace {
    std::int64_t channel, statistics;
  };
  [[nodiscard]] NormPlace place_in_norm(const Node& node, const Shape& shape,
                                        std::int64_t i) const {
    const std::int64_t groups = std::get<LayerNormAttributes>(node.attributes).groups;
    const std::int64_t pixels = shape.height() * shape.width(), n = i / pixels / shape[1];
    const std::int64_t channel = i / pixels % shape[1];
    const std::int64_t group = groups == 0 ? 0 : channel * groups / shape[1];
    return {channel, groups == 0 ? n * pixels + i % pixels : n * groups + group};
  }

  // The reference gives the mean of the magnitudes, from which nothing is then taken away. As with
  // variances, a deviation's own cancellation is the kernel's to avoid unless src was computed.
  void layer_norm(NodeId id) {
    linear(id);
    const Node& node = graph_.node(id);
    const HostValue &src = at(node.inputs[0]), &scale = at(node.inputs[1]);
    const HostValue &shift = at(node.inputs[2]), &mean = at(node.outputs[1]);
    const HostValue& exact_inverse = exact(node.outputs[2]);
    const bool computed = graph_.value(node.inputs[0]).producer != kNoNode;
    HostValue& inverse = at(node.outputs[2]);
    each(inverse, [&](auto i) {
      return exact_inverse.at(i) * (computed ? 1.0 + mean.at(i) * exact_inverse.at(i) : 1.0);
    });
    each(at(node.outputs[0]), [&](auto i) {
      const auto [c, s] = place_in_norm(node, src.spec.shape, i);
      return (src.at(i) + mean.at(s)) * inverse.at(s) * scale.at(c) + shift.at(c);
    });
  }

  // The reference subtracts from diff_dst * scale * inverse what should be added to it here.
  void layer_norm_backward(NodeId id) {
    linear(id);
    const Node& node = graph_.node(id);
    const HostValue &diff_dst = at(node.inputs[0]), &scale = at(node.inputs[4]);
    const HostValue& inverse = exact(node.inputs[3]);
    HostValue& diff_src = at(node.outputs[0]);
    const HostValue difference = signed_;
    each(diff_src, [&](auto i) {
      const auto [c, s] = place_in_norm(node, diff_dst.spec.shape, i);
      return 2.0 * diff_dst.at(i) * scale.at(c) * inverse.at(s) - difference.at(i);
    });
  }

  HostValue& at(ValueId id) { return made_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] const HostValue& exact(ValueId id) const {
    return exact_[static_cast<std::size_t>(id)];
  }

  const Graph& graph_;
  const HostValues& exact_;
  StepState state_;
  HostValues made_;
  HostValue signed_;  // the first output of the last node that linear() ran
};

}  // namespace

Expected expected_of(const OpCase& op_case) {
  const Graph graph = in_double(op_case.graph);
  Expected expected;
  expected.values = make_inputs(op_case, graph);
  expected.state = run_reference(graph, expected.values, op_case.state);
  expected.magnitudes = Magnitudes(graph, expected.values, op_case.state).run();
  return expected;
}

}  // namespace ridgeline::testing
