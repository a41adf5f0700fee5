#pragma once

// The multi-node patterns that convolutions and matrix products share.

#include "plan/kernel.h"
#include "plan/patterns.h"

namespace ridgeline::onednn {

using patterns::Chain;
using patterns::chain_of;

// Appends the sole user of the last node's output to a pattern, if it is of this kind and reads
// that output first.
[[nodiscard]] bool append_user(const Graph& graph, OpKind kind, std::vector<NodeId>& nodes);

template <OpKind root, bool with_bias, bool with_activation>
std::vector<NodeId> match_chain(const Graph& graph, NodeId first) {
  if (graph.node(first).kind != root) return {};
  std::vector<NodeId> nodes = {first};
  if (with_bias && !append_user(graph, OpKind::bias, nodes)) return {};
  if (with_activation && !append_user(graph, OpKind::activation, nodes)) return {};
  return nodes;
}

// The weight gradient (src, diff_dst) of a kind together with the bias gradient of the same
// diff_dst, whichever stands first.
[[nodiscard]] std::vector<NodeId> match_parameter_gradients(const Graph& graph, NodeId first,
                                                            OpKind weights_kind);

template <OpKind weights_kind>
std::vector<NodeId> match_with_bias_gradient(const Graph& graph, NodeId first) {
  return match_parameter_gradients(graph, first, weights_kind);
}

// The nodes of such a problem; `bias` is null when the pattern has none.
struct ParameterGradients {
  const Node* weights = nullptr;
  const Node* bias = nullptr;
};
[[nodiscard]] ParameterGradients parameter_gradients_of(const Problem& problem);

}  // namespace ridgeline::onednn
