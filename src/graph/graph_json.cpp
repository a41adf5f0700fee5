#include "graph/graph_json.h"

#include <array>
#include <concepts>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace ridgeline {
namespace {

using Json = nlohmann::ordered_json;

Json sizes_of(const Shape& shape) {
  Json sizes = Json::array();
  for (int axis = 0; axis < shape.rank(); ++axis) sizes.push_back(shape[axis]);
  return sizes;
}

// Windows of convolutions and pools.
template <typename Attributes>
Json window_json(const Attributes& window) {
  return {{"kernel_h", window.kernel_h},     {"kernel_w", window.kernel_w},
          {"stride_h", window.stride_h},     {"stride_w", window.stride_w},
          {"pad_top", window.pad_top},       {"pad_left", window.pad_left},
          {"pad_bottom", window.pad_bottom}, {"pad_right", window.pad_right},
          {"dilation_h", window.dilation_h}, {"dilation_w", window.dilation_w}};
}

Json json_of(std::monostate) { return Json::object(); }

Json json_of(const NormalizeAttributes& normalize) {
  return {{"mean", normalize.mean},
          {"deviation", normalize.deviation},
          {"flip", normalize.flip},
          {"dtype", name_of(normalize.dtype)}};
}

Json json_of(const Conv2dAttributes& conv) {
  Json json = window_json(conv);
  json["groups"] = conv.groups;
  return json;
}

Json json_of(const ActivationAttributes& activation) {
  Json json = {{"kind", name_of(activation.kind)}};
  if (activation.kind == ActivationKind::leaky_relu) json["slope"] = activation.slope;
  return json;
}

Json json_of(const PoolAttributes& pool) {
  static constexpr std::array kKinds = {"max", "average", "adaptive_average"};
  Json json = {{"kind", kKinds[static_cast<std::size_t>(pool.kind)]}};
  if (pool.kind == PoolKind::adaptive_average) {
    json.update({{"dst_h", pool.dst_h}, {"dst_w", pool.dst_w}});
    return json;
  }
  json.update(window_json(pool));
  json["ceil_mode"] = pool.ceil_mode;
  if (pool.kind == PoolKind::average) json["count_include_pad"] = pool.count_include_pad;
  return json;
}

Json json_of(const BatchNormAttributes& norm) {
  return {{"epsilon", norm.epsilon}, {"momentum", norm.momentum}};
}

Json json_of(const LayerNormAttributes& norm) {
  return {{"groups", norm.groups}, {"epsilon", norm.epsilon}};
}

Json json_of(const SliceAttributes& slice) {
  return {{"begin", slice.begin}, {"channels", slice.channels}};
}

Json json_of(const SplitAttributes& split) { return {{"channels", split.channels}}; }

Json json_of(const ShuffleAttributes& shuffle) { return {{"groups", shuffle.groups}}; }

Json json_of(const PadAttributes& pad) {
  return {{"top", pad.top},
          {"left", pad.left},
          {"bottom", pad.bottom},
          {"right", pad.right},
          {"channels_before", pad.channels_before},
          {"channels_behind", pad.channels_behind}};
}

Json json_of(const ResizeAttributes& resize) {
  return {{"dst_h", resize.dst_h}, {"dst_w", resize.dst_w}};
}

Json json_of(const ReshapeAttributes& reshape) { return {{"shape", sizes_of(reshape.shape)}}; }

Json json_of(const DropoutAttributes& dropout) {
  return {{"probability", dropout.probability}, {"per_sample", dropout.per_sample}};
}

Json json_of(const LossAttributes& loss) {
  return {{"label_smoothing", loss.label_smoothing}, {"weight", loss.weight}};
}

Json json_of(const CastAttributes& cast) { return {{"to", name_of(cast.to)}}; }

// Of the backward pass, of ranks and of optimizers.
template <typename Attributes>
concept OfNoNetwork =
    std::same_as<Attributes, MultiplyAttributes> || std::same_as<Attributes, SgdAttributes> ||
    std::same_as<Attributes, AdamAttributes> || std::same_as<Attributes, OverflowGuardAttributes> ||
    std::same_as<Attributes, AccumulateAttributes> ||
    std::same_as<Attributes, ClipNormAttributes> || std::same_as<Attributes, AllReduceAttributes> ||
    std::same_as<Attributes, MergeStatisticsAttributes>;
Json json_of(const OfNoNetwork auto&) { fail("an op that is no part of a network"); }

Json names_of(const Graph& graph, std::span<const ValueId> values) {
  Json names = Json::array();
  for (const ValueId value : values) names.push_back(graph.value(value).name);
  return names;
}

Json node_json(const Graph& graph, const Node& node) {
  return {{"op", name_of(node.kind)},
          {"layer", node.layer},
          {"inputs", names_of(graph, node.inputs)},
          {"outputs", names_of(graph, node.outputs)},
          {"attributes", std::visit([](const auto& attributes) { return json_of(attributes); },
                                    node.attributes)}};
}

Json value_json(const Value& value) {
  return {{"name", value.name},
          {"shape", sizes_of(value.spec.shape)},
          {"dtype", name_of(value.spec.dtype)},
          {"role", name_of(value.role)}};
}

Json parameter_json(const Parameter& parameter) {
  static constexpr std::array kInits = {"constant", "uniform", "normal", "truncated_normal",
                                        "given"};
  return {{"name", parameter.name},
          {"file_shape", sizes_of(parameter.file_shape)},
          {"frozen", parameter.frozen},
          {"init",
           {{"kind", kInits[static_cast<std::size_t>(parameter.init.kind)]},
            {"amount", parameter.init.amount}}}};
}

}  // namespace

Json graph_json(const Graph& graph, const NetworkOutline& outline) {
  Json parameters = Json::array(), values = Json::array(), nodes = Json::array();
  Json auxiliary = Json::array();
  for (const Parameter& each : outline.parameters) parameters.push_back(parameter_json(each));
  for (const Value& value : graph.values()) values.push_back(value_json(value));
  for (const Node& node : graph.nodes()) {
    ensure(node.phase == Phase::forward, "{} is no part of a network", name_of(node.kind));
    nodes.push_back(node_json(graph, node));
  }
  for (const AuxiliaryHead& head : outline.auxiliary) {
    auxiliary.push_back(
        {{"logits", graph.value(head.logits).name}, {"loss_weight", head.loss_weight}});
  }
  return {{"ridgeline_graph", kGraphVersion},
          {"image", graph.value(outline.image).name},
          {"logits", graph.value(outline.logits).name},
          {"auxiliary", std::move(auxiliary)},
          {"parameters", std::move(parameters)},
          {"values", std::move(values)},
          {"nodes", std::move(nodes)}};
}

}  // namespace ridgeline
