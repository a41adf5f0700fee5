#include "support/host_values.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "base/philox.h"
#include "plan/precision.h"

namespace ridgeline::testing {

Tensor HostValue::tensor() {
  return {bytes.data(), spec, Layout::plain(), dense_strides(spec.shape, LayoutKind::plain)};
}

namespace {

TensorSpec spec_in_double(TensorSpec spec) {
  if (is_float(spec.dtype)) spec.dtype = DType::f64;
  return spec;
}

Attributes attributes_in_double(Attributes attributes) {
  if (auto* normalize = std::get_if<NormalizeAttributes>(&attributes)) {
    normalize->dtype = DType::f64;
  }
  if (auto* cast = std::get_if<CastAttributes>(&attributes)) cast->to = DType::f64;
  return attributes;
}

// Rebuilds a graph; ids stay the same because the values without producer come first.
template <typename ChangeSpec, typename ChangeAttributes>
Graph rebuilt(const Graph& graph, ChangeSpec change_spec, ChangeAttributes change_attributes) {
  Graph made;
  for (const Value& value : graph.values()) {
    if (value.producer == kNoNode) made.add_value(value.name, change_spec(value.spec), value.role);
  }
  for (const Node& node : graph.nodes()) {
    const std::vector<ValueId> outputs = made.add_node(
        node.kind, change_attributes(node.attributes), node.inputs, node.layer, node.phase);
    ensure(outputs == node.outputs, "values without producer must come first in a case");
  }
  return made;
}

std::uint64_t hash_of(const std::string& text) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

// The node for which an input was made.
const Node& user_of(const Graph& graph, ValueId id, OpKind kind) {
  for (const NodeId user : graph.value(id).users) {
    if (graph.node(user).kind == kind) return graph.node(user);
  }
  fail("value {} is not used by {}", id, name_of(kind));
}

// A shuffled grid over (-8, 8). The offset keeps 0 and 6 off the grid.
void fill_distinct(HostValue& value, PhiloxSequence& random) {
  const std::int64_t count = value.elements();
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto place = static_cast<double>(order[static_cast<std::size_t>(i)]);
    value.set(i, ((place + 0.55) / static_cast<double>(count) - 0.5) * 16.0);
  }
}

void fill_probabilities(HostValue& value, PhiloxSequence& random) {
  const std::int64_t classes = value.spec.shape[1];
  for (std::int64_t row = 0; row < value.spec.shape[0]; ++row) {
    std::vector<double> weights(static_cast<std::size_t>(classes));
    for (double& weight : weights) weight = std::exp(random.normal());
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (std::int64_t k = 0; k < classes; ++k) {
      value.set(row * classes + k, weights[static_cast<std::size_t>(k)] / sum);
    }
  }
}

// What the forward op makes of values drawn as for it.
HostValue forward_result(OpKind kind, const Attributes& attributes, const Shape& src,
                         std::size_t output, PhiloxSequence& random) {
  Graph graph;
  const ValueId input = graph.add_value("src", {src, DType::f32}, Role::input);
  const std::vector<ValueId> outputs =
      graph.add_node(kind, attributes, {input}, "", Phase::forward);
  HostValues values(graph.values().size());
  values[0] = HostValue({src, DType::f32});
  fill_distinct(values[0], random);
  run_reference(graph, values, {});
  return values[static_cast<std::size_t>(outputs[output])];
}

HostValue made_positions(const Node& node, const Shape& dst, PhiloxSequence& random) {
  const auto& attributes = std::get<PoolAttributes>(node.attributes);
  const Shape src = {dst[0], dst[1], attributes.src_h, attributes.src_w};
  return forward_result(OpKind::pool, attributes, src, 1, random);
}

// Labels go with the logits or probabilities of the same node.
std::int64_t classes_beside(const Graph& graph, ValueId labels) {
  for (const NodeId user : graph.value(labels).users) {
    for (const ValueId input : graph.node(user).inputs) {
      const Shape& shape = graph.value(input).spec.shape;
      if (shape.rank() == 2) return shape[1];
    }
  }
  fail("labels without logits");
}

void fill(HostValue& value, const OpCase& op_case, ValueId id, PhiloxSequence& random) {
  const auto each = [&](auto draw) {
    for (std::int64_t i = 0; i < value.elements(); ++i) {
      const double number = draw();
      value.set(i, number);
    }
  };
  const auto copy = [&](const HostValue& source) {
    for (std::int64_t i = 0; i < value.elements(); ++i) value.set(i, source.at(i));
  };
  const Graph& graph = op_case.graph;
  switch (op_case.data[static_cast<std::size_t>(id)]) {
    case Data::normal:
      return each([&] { return random.normal(); });
    case Data::one_infinite:
      each([&] { return random.normal(); });
      return value.set(value.elements() / 2, std::numeric_limits<double>::infinity());
    case Data::shifted:
      return each([&] { return 20.0 + random.normal(); });
    case Data::large:
      return each([&] { return 30.0 * random.normal(); });
    case Data::positive:
      return each([&] { return 0.5 + random.uniform_double(); });
    case Data::samples:
      return each([&] { return static_cast<double>(random.below(50000)); });
    case Data::pixels:
      return each([&] { return static_cast<double>(random.below(256)); });
    case Data::labels: {
      const auto classes = static_cast<std::uint64_t>(classes_beside(graph, id));
      return each([&] { return static_cast<double>(random.below(classes)); });
    }
    case Data::positions:
      return copy(
          made_positions(user_of(graph, id, OpKind::pool_backward), value.spec.shape, random));
    case Data::activated: {
      const Node& user = user_of(graph, id, OpKind::activation_backward);
      return copy(forward_result(OpKind::activation, user.attributes, value.spec.shape, 0, random));
    }
    case Data::distinct:
    case Data::probabilities: {
      HostValue drawn({value.spec.shape, DType::f32});
      if (op_case.data[static_cast<std::size_t>(id)] == Data::distinct) {
        fill_distinct(drawn, random);
      } else {
        fill_probabilities(drawn, random);
      }
      return copy(drawn);
    }
  }
}

}  // namespace

Graph in_double(const Graph& graph) {
  Graph made = rebuilt(graph, spec_in_double, attributes_in_double);
  for (const ValueId output : graph.outputs()) made.mark_output(output);
  return made;
}

Graph without_output(const Graph& graph, ValueId unread) {
  Graph made = rebuilt(
      graph, [](const TensorSpec& spec) { return spec; },
      [](const Attributes& attributes) { return attributes; });
  for (const ValueId output : graph.outputs()) {
    if (output != unread) made.mark_output(output);
  }
  return made;
}

HostValues make_inputs(const OpCase& op_case, const Graph& graph) {
  HostValues values(graph.values().size());
  for (std::size_t id = 0; id < op_case.data.size(); ++id) {
    PhiloxSequence random(hash_of(op_case.name), RandomStream::synthetic, id);
    values[id] = HostValue(graph.values()[id].spec);
    fill(values[id], op_case, static_cast<ValueId>(id), random);
    HostValue rounded(op_case.graph.values()[id].spec);
    for (std::int64_t i = 0; i < rounded.elements(); ++i) {
      rounded.set(i, values[id].at(i));
      values[id].set(i, rounded.at(i));
    }
  }
  return values;
}

HostValues inputs_as(const HostValues& values, const Graph& graph) {
  HostValues made(values.size());
  for (std::size_t id = 0; id < values.size(); ++id) {
    if (graph.values()[id].producer != kNoNode) continue;
    made[id] = HostValue(graph.values()[id].spec);
    for (std::int64_t i = 0; i < made[id].elements(); ++i) made[id].set(i, values[id].at(i));
  }
  return made;
}

void run_reference_node(const Graph& graph, NodeId id, HostValues& values, StepState& state) {
  const Node& node = graph.node(id);
  std::vector<Tensor> inputs, outputs;
  for (const ValueId output : node.outputs) {
    HostValue& value = values[static_cast<std::size_t>(output)];
    value = HostValue(graph.value(output).spec);
    outputs.push_back(value.tensor());
  }
  for (const ValueId input : node.inputs) {
    inputs.push_back(values[static_cast<std::size_t>(input)].tensor());
  }
  op_def(node.kind).reference({node.attributes, inputs, outputs, state});
}

StepState run_reference(const Graph& graph, HostValues& values, StepState state) {
  for (std::size_t id = 0; id < graph.nodes().size(); ++id) {
    run_reference_node(graph, static_cast<NodeId>(id), values, state);
  }
  return state;
}

std::optional<OpCase> in_precision(const OpCase& op_case, Precision precision) {
  const auto computed = [&](ValueId id) {
    const NodeId producer = op_case.graph.value(id).producer;
    return producer != kNoNode && op_case.graph.node(producer).kind != OpKind::cast;
  };
  for (const Node& node : op_case.graph.nodes()) {
    const bool decides = (node.kind == OpKind::activation_backward && computed(node.inputs[1])) ||
                         (node.kind == OpKind::pool_backward && node.inputs.size() > 1 &&
                          computed(node.inputs[1])) ||
                         (node.kind == OpKind::metrics && computed(node.inputs[2]));
    if (decides && precision != Precision::fp32) return std::nullopt;
  }
  // What gradients are added to is wide, whatever they are.
  const auto is_sum = [&](ValueId id) {
    return std::ranges::any_of(op_case.graph.value(id).users, [&](NodeId user) {
      const Node& node = op_case.graph.node(user);
      const std::span inputs(node.inputs);
      return node.kind == OpKind::accumulate &&
             std::ranges::count(inputs.first(inputs.size() / 2), id) > 0;
    });
  };
  const auto narrow = [&](ValueId id) {
    const Value& value = op_case.graph.value(id);
    if (value.spec.dtype != DType::f32 || is_sum(id)) return false;
    if (value.role == Role::gradient) return true;
    if (value.role != Role::input) return false;
    return std::all_of(value.users.begin(), value.users.end(), [&](NodeId user) {
      const Node& node = op_case.graph.node(user);
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const bool wide =
            (op_def(node.kind).wide_inputs >> i & 1U) != 0 || value.spec.shape.rank() < 2;
        if (node.inputs[i] == id && wide) return false;
      }
      return true;
    });
  };
  OpCase made = op_case;
  ValueId next = 0;
  const Graph retyped = rebuilt(
      op_case.graph,
      [&](TensorSpec spec) {
        if (narrow(next++)) spec.dtype = image_type(precision);
        return spec;
      },
      [](const Attributes& attributes) { return attributes; });
  made.graph = with_precision(retyped, precision).graph;
  // Casts among the nodes have taken numbers: every value that nothing uses is an output again.
  for (std::size_t id = 0; id < made.graph.values().size(); ++id) {
    const Value& value = made.graph.values()[id];
    if (value.producer != kNoNode && value.users.empty()) {
      made.graph.mark_output(static_cast<ValueId>(id));
    }
  }
  return made;
}

}  // namespace ridgeline::testing
