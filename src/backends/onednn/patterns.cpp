#include "backends/onednn/patterns.h"

namespace ridgeline::onednn {

bool append_user(const Graph& graph, OpKind kind, std::vector<NodeId>& nodes) {
  const ValueId dst = graph.node(nodes.back()).outputs[0];
  const NodeId user = sole_user(graph, dst);
  if (user == kNoNode || graph.node(user).kind != kind || graph.node(user).inputs[0] != dst) {
    return false;
  }
  nodes.push_back(user);
  return true;
}

std::vector<NodeId> match_parameter_gradients(const Graph& graph, NodeId first,
                                              OpKind weights_kind) {
  const Node& node = graph.node(first);
  const bool weights_first = node.kind == weights_kind;
  if (!weights_first && node.kind != OpKind::bias_backward) return {};
  const ValueId diff_dst = node.inputs[weights_first ? 1 : 0];
  const OpKind partner_kind = weights_first ? OpKind::bias_backward : weights_kind;
  for (const NodeId user : graph.value(diff_dst).users) {
    const Node& partner = graph.node(user);
    const bool reads =
        partner.kind == partner_kind && partner.inputs[weights_first ? 0 : 1] == diff_dst;
    if (reads && user > first) return {first, user};
  }
  return {};
}

ParameterGradients parameter_gradients_of(const Problem& problem) {
  ParameterGradients gradients;
  for (std::size_t i = 0; i < problem.nodes.size(); ++i) {
    const Node& node = problem.node(i);
    (node.kind == OpKind::bias_backward ? gradients.bias : gradients.weights) = &node;
  }
  return gradients;
}

}  // namespace ridgeline::onednn
