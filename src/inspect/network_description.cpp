#include "inspect/network_description.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "base/json_text.h"
#include "graph/leave_out.h"

namespace ridgeline {
namespace {

using Json = nlohmann::ordered_json;

std::string op_name(const Node& node) {
  if (const auto* activation = std::get_if<ActivationAttributes>(&node.attributes)) {
    return std::string(name_of(activation->kind));
  }
  if (const auto* pool = std::get_if<PoolAttributes>(&node.attributes)) {
    return pool->kind == PoolKind::max ? "max pool" : "average pool";
  }
  if (const auto* norm = std::get_if<LayerNormAttributes>(&node.attributes)) {
    return norm->groups == 0 ? "layer norm" : "group norm";
  }
  const std::string name(name_of(node.kind));
  if (name.starts_with("bn_")) return "batch norm";
  return node.kind == OpKind::reshape ? "flatten" : name;
}

// "conv2d 3x3, stride 2".
std::string title_of(const Node& node) {
  std::string title = op_name(node);
  if (const auto* conv = std::get_if<Conv2dAttributes>(&node.attributes)) {
    title += fmt::format(" {}x{}", conv->kernel_h, conv->kernel_w);
    if (conv->stride_h > 1) title += fmt::format(", stride {}", conv->stride_h);
    if (conv->groups > 1) title += fmt::format(", {} groups", conv->groups);
  } else if (const auto* pool = std::get_if<PoolAttributes>(&node.attributes)) {
    const bool adaptive = pool->kind == PoolKind::adaptive_average;
    title += adaptive ? fmt::format(" to {}x{}", pool->dst_h, pool->dst_w)
                      : fmt::format(" {}x{}", pool->kernel_h, pool->kernel_w);
  }
  return title;
}

// Without the batch.
Json shape_json(const Shape& shape) {
  Json sizes = Json::array();
  for (int axis = 1; axis < shape.rank(); ++axis) sizes.push_back(shape[axis]);
  return sizes;
}

Json node_json(const Graph& graph, NodeId id, ValueId image) {
  const Node& node = graph.node(id);
  const Value& output = graph.value(node.outputs[0]);
  Json inputs = Json::array();
  for (const ValueId input : node.inputs) {
    const NodeId producer = graph.value(input).producer;
    if (input == image) {
      inputs.push_back(-1);
    } else if (producer != kNoNode) {
      inputs.push_back(producer);
    }
  }
  return {{"layer", node.layer},
          {"op", op_name(node)},
          {"title", title_of(node)},
          {"inputs", std::move(inputs)},
          {"output", shape_json(output.spec.shape)},
          {"flops", graph.cost(id).flops},
          {"statistics", output.version_of != kNoValue || node.kind == OpKind::bn_statistics}};
}

}  // namespace

NetworkRecord describe_network(const ModelConfig& model) {
  Graph graph;
  const ValueId image = graph.add_value(
      "images", {Shape{1, model.channels, model.height, model.width}, DType::f32}, Role::input);
  // As in inference: statistics of one small image would have no variance.
  NetworkBuilder builder(graph, false, model.init, DType::f32);
  const ValueId logits = build_network(builder, image, model);
  if (!builder.auxiliary_heads().empty()) {
    graph = keep_what_leads_to(graph, {&logits, 1}).graph;
  }
  Json nodes = Json::array();
  for (std::size_t id = 0; id < graph.nodes().size(); ++id) {
    nodes.push_back(node_json(graph, static_cast<NodeId>(id), image));
  }
  const Json description = {{"input", shape_json(graph.value(image).spec.shape)},
                            {"nodes", std::move(nodes)}};
  NetworkRecord record;
  record.description = json_text(description);
  record.key = fmt::format("{:016x}", hash_of(record.description));
  return record;
}

}  // namespace ridgeline
