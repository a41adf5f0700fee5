#include "plan/patterns.h"

#include <algorithm>

namespace ridgeline::patterns {
namespace {

// The node's only user, where it is of the kind.
NodeId sole_user_of_kind(const Graph& graph, NodeId node, OpKind kind) {
  const NodeId user = sole_user(graph, graph.node(node).outputs[0]);
  return user != kNoNode && graph.node(user).kind == kind ? user : kNoNode;
}

Match prepend(NodeId first, Match nodes) {
  if (!nodes.empty()) nodes.insert(nodes.begin(), first);
  return nodes;
}

Match append(Match nodes, NodeId last) {
  if (last == kNoNode) return {};
  nodes.push_back(last);
  return nodes;
}

Match epilogue(const Graph& graph, NodeId first, OpKind kind) {
  if (graph.node(first).kind != kind) return {};
  Match nodes = {first};
  for (const OpKind wanted : {OpKind::bias, OpKind::activation}) {
    const NodeId user = sole_user_of_kind(graph, nodes.back(), wanted);
    if (user != kNoNode) nodes.push_back(user);
  }
  if (nodes.size() == 1) return {};
  return nodes;
}

// bn_backward_reduce and bn_backward_apply of one normalisation whose diff_dst is `diff`.
Match normalisation_of(const Graph& graph, ValueId diff) {
  for (const NodeId reduce : graph.value(diff).users) {
    const Node& node = graph.node(reduce);
    if (node.kind != OpKind::bn_backward_reduce || node.inputs[0] != diff) continue;
    for (const NodeId apply : graph.value(diff).users) {
      const Node& other = graph.node(apply);
      if (other.kind == OpKind::bn_backward_apply && other.inputs[0] == diff &&
          other.inputs[5] == node.outputs[0] && other.inputs[6] == node.outputs[1]) {
        return {reduce, apply};
      }
    }
  }
  return {};
}

// The activation_backward that alone uses a node's result, as its diff_dst.
NodeId gradient_after(const Graph& graph, NodeId first) {
  const ValueId result = graph.node(first).outputs[0];
  const NodeId user = sole_user_of_kind(graph, first, OpKind::activation_backward);
  if (user == kNoNode) return kNoNode;
  const std::vector<ValueId>& inputs = graph.node(user).inputs;
  return inputs[0] == result && inputs[1] != result ? user : kNoNode;
}

// The bias_backward of a node's result, where others use that result too.
NodeId bias_gradient_beside(const Graph& graph, NodeId node) {
  const std::vector<NodeId>& users = graph.value(graph.node(node).outputs[0]).users;
  if (users.size() < 2) return kNoNode;
  const auto bias = std::find_if(users.begin(), users.end(), [&](NodeId user) {
    return graph.node(user).kind == OpKind::bias_backward;
  });
  return bias == users.end() ? kNoNode : *bias;
}

bool drops_samples(const Node& node) {
  const auto* dropout = std::get_if<DropoutAttributes>(&node.attributes);
  return dropout != nullptr && dropout->per_sample;
}

bool is_layer_scale(const Graph& graph, const Node& node) {
  return node.kind == OpKind::multiply && graph.value(node.inputs[1]).spec.shape.rank() == 1;
}

std::int64_t shuffle_groups(const Node& node) {
  return std::get<ShuffleAttributes>(node.attributes).groups;
}

std::optional<ActivationAttributes> activation_of(const Node& node) {
  const auto* attributes = std::get_if<ActivationAttributes>(&node.attributes);
  return attributes == nullptr ? std::nullopt : std::optional(*attributes);
}

}  // namespace

Match conv2d_epilogue(const Graph& graph, NodeId first) {
  return epilogue(graph, first, OpKind::conv2d);
}

Match linear_epilogue(const Graph& graph, NodeId first) {
  return epilogue(graph, first, OpKind::linear);
}

Match add_act(const Graph& graph, NodeId first) {
  if (graph.node(first).kind != OpKind::add) return {};
  return append({first}, sole_user_of_kind(graph, first, OpKind::activation));
}

Match bn_apply_act(const Graph& graph, NodeId first) {
  if (graph.node(first).kind != OpKind::bn_apply) return {};
  return append({first}, sole_user_of_kind(graph, first, OpKind::activation));
}

Match bn_apply_add(const Graph& graph, NodeId first) {
  if (graph.node(first).kind != OpKind::bn_apply) return {};
  const NodeId add = sole_user_of_kind(graph, first, OpKind::add);
  if (add == kNoNode || graph.node(add).inputs[0] == graph.node(add).inputs[1]) return {};
  return {first, add};
}

Match bn_apply_add_act(const Graph& graph, NodeId first) {
  const Match nodes = bn_apply_add(graph, first);
  if (nodes.empty()) return {};
  return append(nodes, sole_user_of_kind(graph, nodes[1], OpKind::activation));
}

Match bn_backward(const Graph& graph, NodeId first) {
  const Node& node = graph.node(first);
  if (node.kind != OpKind::bn_backward_reduce) return {};
  const Match nodes = normalisation_of(graph, node.inputs[0]);
  if (nodes.empty() || nodes[0] != first) return {};
  return nodes;
}

Match act_bn_backward(const Graph& graph, NodeId first) {
  const Node& node = graph.node(first);
  if (node.kind != OpKind::activation_backward) return {};
  return prepend(first, normalisation_of(graph, node.outputs[0]));
}

Match add_bn_backward(const Graph& graph, NodeId first) {
  const Node& node = graph.node(first);
  if (node.kind != OpKind::add) return {};
  return prepend(first, normalisation_of(graph, node.outputs[0]));
}

Match add_act_bn_backward(const Graph& graph, NodeId first) {
  const Node& node = graph.node(first);
  if (node.kind != OpKind::add) return {};
  const NodeId user = sole_user(graph, node.outputs[0]);
  if (user == kNoNode || graph.node(user).inputs[0] != node.outputs[0]) return {};
  return prepend(first, act_bn_backward(graph, user));
}

Match again_act_bn_backward(const Graph& graph, NodeId first) {
  const Node& again = graph.node(first);
  if (again.kind != OpKind::bn_apply) return {};
  const NodeId user = sole_user_of_kind(graph, first, OpKind::activation_backward);
  if (user == kNoNode || graph.node(user).inputs[0] == again.outputs[0]) return {};
  const Match nodes = act_bn_backward(graph, user);
  if (nodes.empty()) return {};
  // Src, mean, variance and scale are those of the gradient.
  const Node& apply = graph.node(nodes.back());
  const bool same = std::equal(again.inputs.begin(), again.inputs.begin() + 4,
                               apply.inputs.begin() + 1, apply.inputs.begin() + 5);
  return same ? prepend(first, nodes) : Match();
}

Match add_again_act_bn_backward(const Graph& graph, NodeId first) {
  const Node& node = graph.node(first);
  if (node.kind != OpKind::add) return {};
  const NodeId user = sole_user_of_kind(graph, first, OpKind::activation_backward);
  if (user == kNoNode || graph.node(user).inputs[0] != node.outputs[0]) return {};
  const NodeId again = graph.value(graph.node(user).inputs[1]).producer;
  if (again == kNoNode || again < first) return {};
  return prepend(first, again_act_bn_backward(graph, again));
}

Match act_backward_bias(const Graph& graph, NodeId first) {
  if (graph.node(first).kind != OpKind::activation_backward) return {};
  return append({first}, bias_gradient_beside(graph, first));
}

Match add_act_backward(const Graph& graph, NodeId first) {
  if (graph.node(first).kind != OpKind::add) return {};
  return append({first}, gradient_after(graph, first));
}

Match add_act_backward_bias(const Graph& graph, NodeId first) {
  const Match nodes = add_act_backward(graph, first);
  if (nodes.empty()) return {};
  return append(nodes, bias_gradient_beside(graph, nodes[1]));
}

Match pool_act_backward(const Graph& graph, NodeId first) {
  if (graph.node(first).kind != OpKind::pool_backward) return {};
  return append({first}, gradient_after(graph, first));
}

Match pool_act_backward_bias(const Graph& graph, NodeId first) {
  const Match nodes = pool_act_backward(graph, first);
  if (nodes.empty()) return {};
  return append(nodes, bias_gradient_beside(graph, nodes[1]));
}

Match scale_chain(const Graph& graph, NodeId first) {
  const Node& node = graph.node(first);
  if (!is_layer_scale(graph, node) && !drops_samples(node)) return {};
  Match nodes = {first};
  NodeId user = sole_user(graph, node.outputs[0]);
  if (user != kNoNode && !drops_samples(node) && drops_samples(graph.node(user))) {
    nodes.push_back(user);
    user = sole_user(graph, graph.node(user).outputs[0]);
  }
  if (user != kNoNode && graph.node(user).kind == OpKind::add &&
      graph.node(user).inputs[0] != graph.node(user).inputs[1]) {
    nodes.push_back(user);
  }
  if (nodes.size() == 1) return {};
  return nodes;
}

Match sample_dropout(const Graph& graph, NodeId first) {
  if (!drops_samples(graph.node(first))) return {};
  return {first};
}

Match concat_shuffle(const Graph& graph, NodeId first) {
  const Node& concat = graph.node(first);
  if (concat.kind != OpKind::concat || concat.inputs.size() != 2 ||
      graph.value(concat.inputs[0]).spec != graph.value(concat.inputs[1]).spec) {
    return {};
  }
  const NodeId user = sole_user_of_kind(graph, first, OpKind::shuffle);
  if (user == kNoNode || shuffle_groups(graph.node(user)) != 2) return {};
  return {first, user};
}

Match shuffle_slices(const Graph& graph, NodeId first) {
  const Node& shuffle = graph.node(first);
  if (shuffle.kind != OpKind::shuffle) return {};
  const Value& dst = graph.value(shuffle.outputs[0]);
  const std::int64_t half = dst.spec.shape[1] / 2;
  if (2 * shuffle_groups(shuffle) != dst.spec.shape[1] || dst.users.size() != 2 ||
      graph.is_output(shuffle.outputs[0])) {
    return {};
  }
  std::int64_t begins = 0;
  for (const NodeId user : dst.users) {
    const auto* slice = std::get_if<SliceAttributes>(&graph.node(user).attributes);
    if (slice == nullptr || slice->channels != half) return {};
    begins += slice->begin;
  }
  // One half begins at 0 and the other at `half`.
  if (begins != half) return {};
  return {first, dst.users[0], dst.users[1]};
}

Match run_of(const Graph& graph, NodeId first, OpKind kind, bool same_settings) {
  if (graph.node(first).kind != kind) return {};
  const std::string settings = text_of(kind, graph.node(first).attributes);
  Match nodes;
  for (NodeId id = first; id < static_cast<NodeId>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    if (node.kind != kind) break;
    if (same_settings && text_of(kind, node.attributes) != settings) break;
    nodes.push_back(id);
  }
  if (nodes.size() == 1) return {};
  return nodes;
}

Chain chain_of(const Problem& problem) {
  Chain chain;
  for (std::size_t i = 0; i < problem.nodes.size(); ++i) {
    const Node& node = problem.node(i);
    if (node.kind == OpKind::bias) {
      chain.bias = &node;
    } else if (node.kind == OpKind::activation) {
      chain.activation = &node;
    } else {
      chain.root = &node;
    }
  }
  return chain;
}

ScaleOperands scale_operands(const Problem& problem) {
  ScaleOperands operands;
  operands.src = problem.input_index(problem.node().inputs[0]);
  for (std::size_t i = 0; i < problem.nodes.size(); ++i) {
    const Node& node = problem.node(i);
    if (node.kind == OpKind::multiply) {
      operands.factor = problem.input_index(node.inputs[1]);
    } else if (node.kind == OpKind::dropout) {
      operands.dropout = std::get<DropoutAttributes>(node.attributes);
    } else {
      const bool second = node.inputs[0] == problem.node(i - 1).outputs[0];
      operands.other = problem.input_index(node.inputs[second ? 1 : 0]);
    }
  }
  return operands;
}

Halves halves_of(const Problem& problem) {
  const Node& first = problem.node();
  if (first.kind == OpKind::concat) {
    return {problem.input_index(first.inputs[0]), problem.input_index(first.inputs[1])};
  }
  Halves halves = {problem.output_index(problem.node(1).outputs[0]),
                   problem.output_index(problem.node(2).outputs[0])};
  const bool turned = std::get<SliceAttributes>(problem.node(1).attributes).begin > 0;
  if (turned) std::swap(halves.first, halves.second);
  return halves;
}

NormApplyOperands norm_apply_operands(const Problem& problem) {
  const Node& apply = problem.node();
  NormApplyOperands operands;
  operands.src = problem.input_index(apply.inputs[0]);
  operands.mean = problem.input_index(apply.inputs[1]);
  operands.variance = problem.input_index(apply.inputs[2]);
  operands.scale = problem.input_index(apply.inputs[3]);
  operands.shift = problem.input_index(apply.inputs[4]);
  if (problem.nodes.size() > 1 && problem.node(1).kind == OpKind::add) {
    const std::vector<ValueId>& terms = problem.node(1).inputs;
    operands.other = problem.input_index(terms[terms[0] == apply.outputs[0] ? 1 : 0]);
  }
  operands.attributes = std::get<BatchNormAttributes>(apply.attributes);
  operands.activation = activation_of(problem.node(problem.nodes.size() - 1));
  return operands;
}

NormBackwardOperands norm_backward_operands(const Problem& problem) {
  NormBackwardOperands operands;
  const std::size_t first = problem.node().kind == OpKind::bn_apply ? 1 : 0;
  operands.diff = problem.input_index(problem.node(first).inputs[0]);
  for (std::size_t i = 0; i < problem.nodes.size(); ++i) {
    const Node& node = problem.node(i);
    if (node.kind == OpKind::bn_apply) {
      operands.shift = problem.input_index(node.inputs[4]);
      continue;
    }
    if (node.kind == OpKind::add || node.kind == OpKind::activation_backward) {
      if (node.kind == OpKind::add) {
        operands.other = problem.input_index(node.inputs[1]);
      } else if (!operands.shift) {
        operands.kept = problem.input_index(node.inputs[1]);
      }
      operands.stored = problem.find_output(node.outputs[0]);
      operands.activation = activation_of(node);
      continue;
    }
    operands.attributes = std::get<BatchNormAttributes>(node.attributes);
    operands.src = problem.input_index(node.inputs[1]);
    operands.mean = problem.input_index(node.inputs[2]);
    operands.variance = problem.input_index(node.inputs[3]);
    if (node.kind == OpKind::bn_backward_reduce) {
      operands.reduce = true;
      operands.diff_scale = problem.find_output(node.outputs[0]);
      operands.diff_shift = problem.find_output(node.outputs[1]);
      continue;
    }
    operands.apply = true;
    operands.scale = problem.input_index(node.inputs[4]);
    operands.diff_src = problem.find_output(node.outputs[0]);
    if (!operands.reduce) {
      operands.given_scale = problem.input_index(node.inputs[5]);
      operands.given_shift = problem.input_index(node.inputs[6]);
    }
  }
  return operands;
}

}  // namespace ridgeline::patterns
