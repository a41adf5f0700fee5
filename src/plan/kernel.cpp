#include "plan/kernel.h"

#include <algorithm>

#include "base/error.h"

namespace ridgeline {
namespace {

std::size_t position_of(const std::vector<ValueId>& values, ValueId value) {
  const auto found = std::find(values.begin(), values.end(), value);
  ensure(found != values.end(), "value {} is not at the boundary of the problem", value);
  return static_cast<std::size_t>(found - values.begin());
}

bool contains(const std::vector<ValueId>& values, ValueId value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace

std::size_t Problem::input_index(ValueId value) const { return position_of(inputs, value); }
std::size_t Problem::output_index(ValueId value) const { return position_of(outputs, value); }

std::optional<std::size_t> Problem::find_output(ValueId value) const {
  if (!contains(outputs, value)) return std::nullopt;
  return output_index(value);
}

std::string Problem::text() const {
  std::string text;
  for (const NodeId id : nodes) {
    if (!text.empty()) text += '+';
    text += name_of(graph->node(id).kind);
    const std::string attributes = text_of(graph->node(id).kind, graph->node(id).attributes);
    if (!attributes.empty()) text += '(' + attributes + ')';
  }
  const auto list = [&](const std::vector<ValueId>& values) {
    char separator = ' ';
    for (const ValueId id : values) {
      const TensorSpec& spec = graph->value(id).spec;
      text += separator + spec.shape.text() + ':' + std::string(name_of(spec.dtype));
      separator = ',';
    }
  };
  list(inputs);
  text += " ->";
  list(outputs);
  if (graph->allows_tf32()) text += " tf32";
  return text;
}

Problem make_problem(const Graph& graph, std::vector<NodeId> nodes, bool measure) {
  Problem problem{&graph, std::move(nodes), {}, {}, measure};
  std::vector<ValueId> produced;
  for (const NodeId id : problem.nodes) {
    const Node& node = graph.node(id);
    for (const ValueId input : node.inputs) {
      if (!contains(produced, input) && !contains(problem.inputs, input)) {
        problem.inputs.push_back(input);
      }
    }
    produced.insert(produced.end(), node.outputs.begin(), node.outputs.end());
  }
  const auto inside = [&](NodeId id) {
    return std::find(problem.nodes.begin(), problem.nodes.end(), id) != problem.nodes.end();
  };
  const Node& last = graph.node(problem.nodes.back());
  for (const ValueId id : produced) {
    const Value& value = graph.value(id);
    const bool of_last = contains(last.outputs, id);
    const bool used_outside = std::any_of(value.users.begin(), value.users.end(),
                                          [&](NodeId user) { return !inside(user); });
    const bool kept = graph.is_output(id) || is_persistent(value.role);
    if (of_last || used_outside || kept) problem.outputs.push_back(id);
  }
  return problem;
}

void set_layouts(Kernel& kernel, const Problem& problem, const Layout& image) {
  const auto layouts_of = [&](const std::vector<ValueId>& values) {
    std::vector<Layout> layouts;
    for (const ValueId id : values) {
      const bool is_image = problem.graph->value(id).spec.shape.rank() == 4;
      layouts.push_back(is_image ? image : Layout::plain());
    }
    return layouts;
  };
  kernel.input_layouts = layouts_of(problem.inputs);
  kernel.output_layouts = layouts_of(problem.outputs);
}

NodeId sole_user(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  if (value.users.size() != 1 || graph.is_output(id) || is_persistent(value.role)) return kNoNode;
  return value.users[0];
}

}  // namespace ridgeline
