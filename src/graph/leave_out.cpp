#include "graph/leave_out.h"

#include <algorithm>

namespace ridgeline {
namespace {

// Whether each value leads to a wanted one.
std::vector<char> needed_values(const Graph& graph, std::span<const ValueId> wanted) {
  std::vector<char> needed(graph.values().size());
  for (const ValueId value : wanted) needed[static_cast<std::size_t>(value)] = 1;
  for (std::size_t id = graph.nodes().size(); id-- > 0;) {
    const Node& node = graph.nodes()[id];
    const bool used = std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId output) {
      return needed[static_cast<std::size_t>(output)] != 0;
    });
    if (!used) continue;
    for (const ValueId input : node.inputs) needed[static_cast<std::size_t>(input)] = 1;
  }
  return needed;
}

}  // namespace

SmallerGraph keep_what_leads_to(const Graph& graph, std::span<const ValueId> wanted) {
  const std::vector<char> needed = needed_values(graph, wanted);
  SmallerGraph made;
  made.graph.allow_tf32(graph.allows_tf32());
  made.value_of.assign(graph.values().size(), kNoValue);
  const auto mapped = [&](ValueId id) -> ValueId& {
    return made.value_of[static_cast<std::size_t>(id)];
  };
  for (std::size_t id = 0; id < graph.values().size(); ++id) {
    const Value& value = graph.values()[id];
    if (value.producer == kNoNode && (needed[id] != 0 || value.role == Role::input)) {
      made.value_of[id] = made.graph.add_value(value.name, value.spec, value.role);
    }
  }
  for (const Node& node : graph.nodes()) {
    const bool used = std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId output) {
      return needed[static_cast<std::size_t>(output)] != 0;
    });
    if (!used) continue;
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(mapped(input));
    const std::vector<ValueId> outputs =
        made.graph.add_node(node.kind, node.attributes, std::move(inputs), node.layer, node.phase);
    for (std::size_t i = 0; i < outputs.size(); ++i) mapped(node.outputs[i]) = outputs[i];
  }
  return made;
}

}  // namespace ridgeline
