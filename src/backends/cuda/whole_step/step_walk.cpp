#include "backends/cuda/whole_step/step_walk.h"

#include <algorithm>

#include "base/error.h"

namespace ridgeline::cuda {

std::vector<NodeId> DenseNodes::all() const {
  return {linear,           bias,         activation, activation_backward, bias_backward,
          weights_backward, data_backward};
}

std::vector<NodeId> ConvNodes::all() const {
  return {conv,          bias,
          activation,    pool,
          pool_backward, activation_backward,
          bias_backward, weights_backward,
          data_backward};
}

NodeId StepWalk::user(OpKind kind, std::size_t index) const {
  for (const NodeId id : graph_.value(value).users) {
    const Node& node = graph_.node(id);
    if (node.kind == kind && node.inputs[index] == value) return id;
  }
  return kNoNode;
}

NodeId StepWalk::through(OpKind kind) {
  const NodeId node = user(kind);
  if (node != kNoNode) value = graph_.node(node).outputs[0];
  return node;
}

bool StepWalk::dense(DenseNodes& nodes) {
  nodes.linear = through(OpKind::linear);
  nodes.bias = through(OpKind::bias);
  nodes.activation = through(OpKind::activation);
  return nodes.linear != kNoNode && nodes.bias != kNoNode;
}

bool StepWalk::conv(ConvNodes& nodes) {
  nodes.conv = through(OpKind::conv2d);
  nodes.bias = through(OpKind::bias);
  nodes.activation = through(OpKind::activation);
  nodes.pool = through(OpKind::pool);
  return nodes.conv != kNoNode && nodes.bias != kNoNode && nodes.activation != kNoNode &&
         nodes.pool != kNoNode;
}

bool StepWalk::loss(LossNodes& nodes) {
  const ValueId logits = value;
  nodes.loss = user(OpKind::softmax_cross_entropy);
  if (nodes.loss == kNoNode) return false;
  const Node& loss = graph_.node(nodes.loss);
  if (std::get<LossAttributes>(loss.attributes).weight != 1.0) return false;
  value = loss.outputs[0];
  nodes.metrics = user(OpKind::metrics, 1);
  value = loss.outputs[1];
  nodes.backward = through(OpKind::softmax_cross_entropy_backward);
  if (nodes.backward == kNoNode || graph_.node(nodes.backward).inputs[1] != loss.inputs[1]) {
    return false;
  }
  if (nodes.metrics == kNoNode) return true;
  const Node& metrics = graph_.node(nodes.metrics);
  return metrics.inputs[2] == logits && metrics.inputs[3] == loss.inputs[1];
}

bool StepWalk::dense_backward(DenseNodes& nodes, bool first) {
  if (nodes.activation != kNoNode) {
    nodes.activation_backward = through(OpKind::activation_backward);
    if (nodes.activation_backward == kNoNode) return false;
  }
  nodes.bias_backward = user(OpKind::bias_backward);
  nodes.weights_backward = user(OpKind::linear_backward_weights, 1);
  nodes.data_backward = through(OpKind::linear_backward_data);
  return nodes.bias_backward != kNoNode && nodes.weights_backward != kNoNode &&
         (nodes.data_backward == kNoNode) == first;
}

bool StepWalk::conv_backward(ConvNodes& nodes, bool first) {
  nodes.pool_backward = through(OpKind::pool_backward);
  if (nodes.pool_backward == kNoNode) return false;
  nodes.activation_backward = through(OpKind::activation_backward);
  if (nodes.activation_backward == kNoNode) return false;
  nodes.bias_backward = user(OpKind::bias_backward);
  nodes.weights_backward = user(OpKind::conv2d_backward_weights, 1);
  nodes.data_backward = through(OpKind::conv2d_backward_data);
  return nodes.bias_backward != kNoNode && nodes.weights_backward != kNoNode &&
         (nodes.data_backward == kNoNode) == first;
}

std::vector<NodeId> in_order(std::vector<NodeId> nodes, NodeId first) {
  std::erase(nodes, kNoNode);
  std::sort(nodes.begin(), nodes.end());
  if (nodes.empty() || nodes[0] != first) return {};
  return nodes;
}

std::string check_boundary(const Problem& problem, const LossNodes& loss,
                           const std::vector<NodeId>& gradients) {
  const Graph& graph = *problem.graph;
  for (const ValueId id : problem.inputs) {
    const Value& value = graph.value(id);
    if (is_float(value.spec.dtype) && value.spec.dtype != DType::f32 &&
        value.role != Role::metric) {
      return fmt::format("whole steps are computed in f32, not {}", name_of(value.spec.dtype));
    }
  }
  for (const ValueId id : problem.outputs) {
    const Value& value = graph.value(id);
    const bool expected =
        id == graph.node(loss.loss).outputs[0] || value.producer == loss.metrics ||
        std::find(gradients.begin(), gradients.end(), value.producer) != gradients.end();
    if (!expected) return fmt::format("{} is needed outside the step", value.name);
    if (value.spec.dtype != DType::f32 && value.producer != loss.metrics) {
      return fmt::format("whole steps are computed in f32, not {}", name_of(value.spec.dtype));
    }
  }
  return {};
}

LossPlaces::LossPlaces(const Problem& problem, const LossNodes& nodes) {
  const Graph& graph = *problem.graph;
  const auto output = [&](ValueId value) -> std::optional<std::size_t> {
    const auto found = std::find(problem.outputs.begin(), problem.outputs.end(), value);
    if (found == problem.outputs.end()) return std::nullopt;
    return static_cast<std::size_t>(found - problem.outputs.begin());
  };
  labels = problem.input_index(graph.node(nodes.loss).inputs[1]);
  loss = output(graph.node(nodes.loss).outputs[0]);
  if (nodes.metrics == kNoNode) return;
  totals = problem.input_index(graph.node(nodes.metrics).inputs[0]);
  new_totals = output(graph.node(nodes.metrics).outputs[0]);
}

float smoothing_of(const Graph& graph, const LossNodes& nodes) {
  const auto& attributes = std::get<LossAttributes>(graph.node(nodes.loss).attributes);
  return static_cast<float>(attributes.label_smoothing);
}

double diff_weight_of(const Graph& graph, const LossNodes& nodes) {
  return std::get<LossAttributes>(graph.node(nodes.backward).attributes).weight;
}

std::string check_normalize(const Node& node) {
  const auto& a = std::get<NormalizeAttributes>(node.attributes);
  const auto alike = [](const std::vector<double>& values) {
    return std::all_of(values.begin(), values.end(), [&](double v) { return v == values[0]; });
  };
  if (a.flip) return "whole steps mirror no samples";
  if (!alike(a.mean) || !alike(a.deviation)) return "the channels are normalised differently";
  return {};
}

PixelScale pixel_scale_of(const Node& node) {
  const auto& a = std::get<NormalizeAttributes>(node.attributes);
  return {static_cast<float>(1.0 / (255.0 * a.deviation[0])),
          static_cast<float>(-a.mean[0] / a.deviation[0])};
}

}  // namespace ridgeline::cuda
