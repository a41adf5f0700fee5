#include "graph/graph.h"

#include <algorithm>

#include "base/error.h"

namespace ridgeline {

std::string_view name_of(Role role) {
  switch (role) {
    case Role::input:
      return "input";
    case Role::parameter:
      return "parameter";
    case Role::gradient:
      return "gradient";
    case Role::optimizer_state:
      return "optimizer state";
    case Role::statistics:
      return "statistics";
    case Role::metric:
      return "metric";
    case Role::activation:
      return "activation";
    case Role::temporary:
      return "temporary";
    case Role::workspace:
      return "workspace";
  }
  return "?";
}

namespace {

// Sizes are added and multiplied in 64 bits; a network of such tensors fits no machine.
void check_size(const std::string& name, const Shape& shape) {
  constexpr std::int64_t kMostElements = std::int64_t{1} << 48;
  std::int64_t elements = 1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (!__builtin_mul_overflow(elements, shape[axis], &elements) && elements <= kMostElements) {
      continue;
    }
    bad_input("{}: a tensor of {} is larger than any memory", name, shape.text());
  }
}

}  // namespace

ValueId Graph::add_value(std::string name, TensorSpec spec, Role role) {
  ensure(is_persistent(role), "value {} needs a producer", name);
  ensure(find(name) == kNoValue, "two values named {}", name);
  check_size(name, spec.shape);
  by_name_.emplace(name, static_cast<ValueId>(values_.size()));
  values_.push_back({.name = std::move(name), .spec = spec, .role = role});
  return static_cast<ValueId>(values_.size()) - 1;
}

std::string Graph::unique_name(const std::string& wanted) const {
  std::string name = wanted;
  for (int suffix = 2; by_name_.contains(name); ++suffix) {
    name = wanted + '#' + std::to_string(suffix);
  }
  return name;
}

std::vector<ValueId> Graph::add_node(OpKind kind, Attributes attributes,
                                     std::vector<ValueId> inputs, std::string layer, Phase phase) {
  std::vector<TensorSpec> specs;
  specs.reserve(inputs.size());
  for (const ValueId input : inputs) specs.push_back(value(input).spec);
  std::vector<OutputSpec> output_specs;
  try {
    output_specs = op_def(kind).outputs(attributes, specs);
  } catch (const Error& error) {
    throw Error(error.kind(), layer.empty() ? error.what() : layer + ": " + error.what());
  }

  const auto id = static_cast<NodeId>(nodes_.size());
  std::vector<ValueId> outputs;
  for (std::size_t i = 0; i < output_specs.size(); ++i) {
    const OutputSpec& output = output_specs[i];
    Value made{.spec = output.spec, .producer = id};
    if (output.updates >= 0) {
      made.version_of = inputs[static_cast<std::size_t>(output.updates)];
      made.role = value(made.version_of).role;
      made.name = unique_name(value(made.version_of).name + "'");
    } else {
      const bool forward = phase == Phase::forward || phase == Phase::input;
      made.role = forward ? Role::activation : Role::temporary;
      std::string base = (layer.empty() ? "" : layer + ".") + std::string(name_of(kind));
      if (i > 0) base += '.' + std::to_string(i);
      made.name = unique_name(base);
    }
    check_size(made.name, made.spec.shape);
    outputs.push_back(static_cast<ValueId>(values_.size()));
    by_name_.emplace(made.name, outputs.back());
    values_.push_back(std::move(made));
  }
  for (const ValueId input : inputs) {
    std::vector<NodeId>& users = values_[static_cast<std::size_t>(input)].users;
    if (users.empty() || users.back() != id) users.push_back(id);
  }
  nodes_.push_back(
      {kind, std::move(attributes), std::move(inputs), outputs, std::move(layer), phase});
  return outputs;
}

void Graph::name_gradient(ValueId id, std::string name) {
  ensure(!by_name_.contains(name), "two values named {}", name);
  Value& value = values_[static_cast<std::size_t>(id)];
  by_name_.erase(value.name);
  by_name_.emplace(name, id);
  value.name = std::move(name);
  value.role = Role::gradient;
}

void Graph::mark_output(ValueId value) {
  if (!is_output(value)) outputs_.push_back(value);
}

bool Graph::is_output(ValueId id) const {
  return std::find(outputs_.begin(), outputs_.end(), id) != outputs_.end();
}

ValueId Graph::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? kNoValue : found->second;
}

std::vector<TensorSpec> Graph::input_specs(NodeId id) const {
  std::vector<TensorSpec> specs;
  for (const ValueId input : node(id).inputs) specs.push_back(value(input).spec);
  return specs;
}

Cost Graph::cost(NodeId id) const {
  return cost_of(node(id).kind, node(id).attributes, input_specs(id));
}

std::string Graph::text() const {
  std::string text;
  const auto names = [&](const std::vector<ValueId>& ids) {
    std::string list;
    for (const ValueId id : ids) {
      if (!list.empty()) list += ", ";
      list += value(id).name + ' ' + value(id).spec.shape.text();
    }
    return list;
  };
  for (const Node& node : nodes_) {
    const std::string attributes = text_of(node.kind, node.attributes);
    text += fmt::format("{:<17} {:<24} {}{} ({}) -> {}\n", name_of(node.phase), node.layer,
                        name_of(node.kind), attributes.empty() ? "" : "[" + attributes + "]",
                        names(node.inputs), names(node.outputs));
  }
  return text;
}

}  // namespace ridgeline
