#include "onnx/export.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "base/error.h"
#include "onnx/names.h"
#include "ops/adaptive_pool.h"

namespace ridgeline::onnx {
namespace {

constexpr std::int64_t kOpset = 17;
constexpr std::string_view kFolded = ".folded";

Attribute integer(std::string name, std::int64_t value) {
  Attribute made;
  made.name = std::move(name);
  made.kind = Attribute::Kind::integer;
  made.integer = value;
  return made;
}

Attribute integers(std::string name, Dims values) {
  Attribute made;
  made.name = std::move(name);
  made.kind = Attribute::Kind::integers;
  made.integers = std::move(values);
  return made;
}

Attribute real(std::string name, double value) {
  Attribute made;
  made.name = std::move(name);
  made.kind = Attribute::Kind::real;
  made.real = value;
  return made;
}

Attribute text(std::string name, std::string value) {
  Attribute made;
  made.name = std::move(name);
  made.kind = Attribute::Kind::text;
  made.text = std::move(value);
  return made;
}

class Exporter {
 public:
  explicit Exporter(const ExportedNetwork& network) : network_(network), graph_(*network.graph) {}

  Model run() {
    model_.opsets[""] = kOpset;
    model_.metadata = network_.metadata;
    name_ends();
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes().size()); ++id) {
      if (graph_.node(id).phase == Phase::forward) add(id);
    }
    return std::move(model_);
  }

 private:
  [[nodiscard]] const Shape& shape(ValueId id) const { return graph_.value(id).spec.shape; }

  // The ends of the network get names that people know; values between them have ours.
  void name_ends() {
    names_[network_.image] = "image";
    const Shape& image = shape(network_.image);
    model_.inputs.push_back({.name = "image",
                             .dims = {std::nullopt, image[1], image[2], image[3]},
                             .dim_names = {"batch", "", "", ""}});
    for (std::size_t i = 0; i < network_.logits.size(); ++i) {
      const std::string name = i == 0 ? "logits" : fmt::format("auxiliary{}", i);
      names_[network_.logits[i]] = name;
      model_.outputs.push_back({.name = name,
                                .dims = {std::nullopt, shape(network_.logits[i])[1]},
                                .dim_names = {"batch", ""}});
    }
  }

  [[nodiscard]] std::string name(ValueId id) const {
    const auto found = names_.find(id);
    // Parameters have names of their own.
    return found != names_.end() ? found->second : "/" + graph_.value(id).name;
  }

  void emit(const Node& node, std::string type, std::vector<std::string> inputs, std::string output,
            std::vector<Attribute> attributes = {}) {
    OpNode made;
    made.name = node_name(node.layer);
    made.type = std::move(type);
    made.inputs = std::move(inputs);
    made.outputs = {std::move(output)};
    made.attributes = std::move(attributes);
    model_.nodes.push_back(std::move(made));
  }

  // Some runtimes refuse two nodes of one name: a layer's further ones get a number.
  std::string node_name(const std::string& layer) {
    std::string made = layer;
    for (int number = 2; !node_names_.insert(made).second; ++number) {
      made = fmt::format("{}{}{}", layer, kNodeNumber, number);
    }
    return made;
  }

  // A value between ops of ONNX that is none of ours.
  [[nodiscard]] std::string between(const Node& node) {
    return fmt::format("/{}.{}", node.layer, ++betweens_);
  }

  std::string constant(const Dims& numbers) {
    const std::string made = fmt::format("shape_{}", ++constants_);
    model_.constants.push_back(make_integers(made, {std::ssize(numbers)}, numbers));
    return made;
  }

  std::string constant(Dims dims, std::span<const double> numbers) {
    const std::string made = fmt::format("constant_{}", ++constants_);
    model_.constants.push_back(make_array(made, ElementType::float32, std::move(dims), numbers));
    return made;
  }
  std::string number(double value) { return constant(Dims{}, {{value}}); }
  // All its digits.
  std::string exact_number(double value) {
    const std::string made = fmt::format("constant_{}", ++constants_);
    model_.constants.push_back(make_array(made, ElementType::float64, {}, {{value}}));
    return made;
  }

  // A parameter or running statistic, under its own name.
  std::string weights(ValueId id, Dims dims) {
    const std::string& own = graph_.value(id).name;
    // What batch norms were folded into is what the layer has in the file.
    const std::string written =
        own.ends_with(kFolded) ? own.substr(0, own.size() - kFolded.size()) : own;
    if (written_.insert(written).second) {
      model_.constants.push_back(
          make_array(written, ElementType::float32, std::move(dims), network_.values(own)));
    }
    return written;
  }
  std::string weights(ValueId id) {
    Dims dims;
    for (int axis = 0; axis < shape(id).rank(); ++axis) dims.push_back(shape(id)[axis]);
    return weights(id, std::move(dims));
  }
  // One number for each channel of a value, as ONNX broadcasts it.
  std::string per_channel(ValueId id, ValueId of) {
    Dims dims = {shape(id).elements()};
    for (int axis = 2; axis < shape(of).rank(); ++axis) dims.push_back(1);
    return weights(id, std::move(dims));
  }

  [[nodiscard]] bool is_weights(ValueId id) const {
    const Role role = graph_.value(id).role;
    return role == Role::parameter || role == Role::statistics;
  }

  // The bias node that alone reads a value and becomes a part of the op before it.
  [[nodiscard]] NodeId bias_behind(const Node& node) const {
    const Value& value = graph_.value(node.outputs[0]);
    const bool wanted = std::find(network_.logits.begin(), network_.logits.end(),
                                  node.outputs[0]) != network_.logits.end();
    if (value.users.size() != 1 || wanted) return kNoNode;
    return graph_.node(value.users[0]).kind == OpKind::bias ? value.users[0] : kNoNode;
  }

  void add(NodeId id);
  void add_product(const Node& node);
  void add_activation(const Node& node);
  void add_pool(const Node& node);
  void add_adaptive_pool(const Node& node, const PoolAttributes& pool);
  void add_batch_norm(const Node& node);
  void add_layer_norm(const Node& node);
  void add_group_norm(const Node& node, const LayerNormAttributes& norm);
  void add_reshape(const Node& node);
  void add_shuffle(const Node& node);
  void add_pad(const Node& node);
  void add_resize(const Node& node);
  void add_multiply(const Node& node);
  void add_split(const Node& node);

  const ExportedNetwork& network_;
  const Graph& graph_;
  Model model_;
  std::map<ValueId, std::string> names_;
  std::set<std::string> written_, node_names_;
  std::vector<NodeId> joined_;  // bias nodes that are a part of the op before
  int betweens_ = 0, constants_ = 0;
};

void Exporter::add_product(const Node& node) {
  std::vector<std::string> inputs = {name(node.inputs[0]), weights(node.inputs[1])};
  ValueId dst = node.outputs[0];
  if (const NodeId bias = bias_behind(node); bias != kNoNode) {
    joined_.push_back(bias);
    inputs.push_back(weights(graph_.node(bias).inputs[1]));
    dst = graph_.node(bias).outputs[0];
  }
  if (node.kind == OpKind::linear) {
    emit(node, "Gemm", std::move(inputs), name(dst), {integer("transB", 1)});
    return;
  }
  const auto& conv = std::get<Conv2dAttributes>(node.attributes);
  emit(node, "Conv", std::move(inputs), name(dst),
       {integers("kernel_shape", {conv.kernel_h, conv.kernel_w}),
        integers("strides", {conv.stride_h, conv.stride_w}),
        integers("pads", {conv.pad_top, conv.pad_left, conv.pad_bottom, conv.pad_right}),
        integers("dilations", {conv.dilation_h, conv.dilation_w}), integer("group", conv.groups)});
}

void Exporter::add_activation(const Node& node) {
  const auto& activation = std::get<ActivationAttributes>(node.attributes);
  const std::string src = name(node.inputs[0]), dst = name(node.outputs[0]);
  switch (activation.kind) {
    case ActivationKind::relu:
      return emit(node, "Relu", {src}, dst);
    case ActivationKind::relu6:
      return emit(node, "Clip", {src, number(0.0), number(6.0)}, dst);
    case ActivationKind::leaky_relu:
      return emit(node, "LeakyRelu", {src}, dst, {real("alpha", activation.slope)});
    case ActivationKind::sigmoid:
      return emit(node, "Sigmoid", {src}, dst);
    case ActivationKind::tanh:
      return emit(node, "Tanh", {src}, dst);
    case ActivationKind::hard_sigmoid:
      return emit(node, "HardSigmoid", {src}, dst, {real("alpha", 1.0 / 6.0), real("beta", 0.5)});
    case ActivationKind::hard_swish:
      return emit(node, "HardSwish", {src}, dst);
    case ActivationKind::silu: {
      const std::string gate = between(node);
      emit(node, "Sigmoid", {src}, gate);
      return emit(node, "Mul", {src, gate}, dst);
    }
    case ActivationKind::gelu: {
      const std::string scaled = between(node), erf = between(node), sum = between(node),
                        product = between(node);
      emit(node, "Div", {src, number(std::numbers::sqrt2)}, scaled);
      emit(node, "Erf", {scaled}, erf);
      emit(node, "Add", {erf, number(1.0)}, sum);
      emit(node, "Mul", {src, sum}, product);
      return emit(node, "Mul", {product, number(0.5)}, dst);
    }
    case ActivationKind::gelu_tanh: {
      const std::string cube = between(node), small = between(node), inner = between(node),
                        scaled = between(node), tanh = between(node), sum = between(node),
                        product = between(node);
      emit(node, "Pow", {src, number(3.0)}, cube);
      emit(node, "Mul", {cube, number(0.044715)}, small);
      emit(node, "Add", {src, small}, inner);
      emit(node, "Mul", {inner, number(std::sqrt(2.0 / std::numbers::pi))}, scaled);
      emit(node, "Tanh", {scaled}, tanh);
      emit(node, "Add", {tanh, number(1.0)}, sum);
      emit(node, "Mul", {src, sum}, product);
      return emit(node, "Mul", {product, number(0.5)}, dst);
    }
  }
}

void Exporter::add_pool(const Node& node) {
  const auto& pool = std::get<PoolAttributes>(node.attributes);
  const Shape& image = shape(node.inputs[0]);
  const std::string src = name(node.inputs[0]), dst = name(node.outputs[0]);
  if (pool.kind == PoolKind::adaptive_average) return add_adaptive_pool(node, pool);
  const bool pads = pool.pad_top + pool.pad_left + pool.pad_bottom + pool.pad_right > 0;
  const bool average = pool.kind == PoolKind::average;
  if (average && !pads && pool.kernel_h == image[2] && pool.kernel_w == image[3]) {
    return emit(node, "GlobalAveragePool", {src}, dst);
  }
  std::vector<Attribute> attributes = {
      integers("kernel_shape", {pool.kernel_h, pool.kernel_w}),
      integers("strides", {pool.stride_h, pool.stride_w}),
      integers("pads", {pool.pad_top, pool.pad_left, pool.pad_bottom, pool.pad_right}),
      integer("ceil_mode", pool.ceil_mode ? 1 : 0)};
  if (average) {
    ensure(pool.dilation_h == 1 && pool.dilation_w == 1, "an average with dilation");
    attributes.push_back(integer("count_include_pad", pool.count_include_pad ? 1 : 0));
  } else {
    attributes.push_back(integers("dilations", {pool.dilation_h, pool.dilation_w}));
  }
  emit(node, average ? "AveragePool" : "MaxPool", {src}, dst, std::move(attributes));
}

// A product along each of the two axes.
void Exporter::add_adaptive_pool(const Node& node, const PoolAttributes& pool) {
  const Shape& image = shape(node.inputs[0]);
  const std::string along = between(node), turned = between(node), down = between(node);
  emit(node, "MatMul",
       {name(node.inputs[0]),
        constant({image[3], pool.dst_w}, adaptive_shares(image[3], pool.dst_w))},
       along);
  emit(node, "Transpose", {along}, turned, {integers("perm", {0, 1, 3, 2})});
  emit(node, "MatMul",
       {turned, constant({image[2], pool.dst_h}, adaptive_shares(image[2], pool.dst_h))}, down);
  emit(node, "Transpose", {down}, name(node.outputs[0]), {integers("perm", {0, 1, 3, 2})});
}

// In training the statistics are the batch's own; the running ones have the layer's name.
void Exporter::add_batch_norm(const Node& node) {
  const auto& norm = std::get<BatchNormAttributes>(node.attributes);
  const bool running = is_weights(node.inputs[1]);
  const ValueId mean = running ? node.inputs[1] : graph_.find(node.layer + ".running_mean");
  const ValueId variance = running ? node.inputs[2] : graph_.find(node.layer + ".running_var");
  ensure(mean != kNoValue && variance != kNoValue, "{} has no running statistics", node.layer);
  emit(node, "BatchNormalization",
       {name(node.inputs[0]), weights(node.inputs[3]), weights(node.inputs[4]), weights(mean),
        weights(variance)},
       name(node.outputs[0]),
       {real("epsilon", norm.epsilon), real("momentum", 1.0 - norm.momentum)});
}

void Exporter::add_layer_norm(const Node& node) {
  const auto& norm = std::get<LayerNormAttributes>(node.attributes);
  if (norm.groups > 0) return add_group_norm(node, norm);
  const std::vector<std::string> parameters = {weights(node.inputs[1]), weights(node.inputs[2])};
  const std::string src = name(node.inputs[0]), dst = name(node.outputs[0]);
  const std::vector<Attribute> attributes = {integer("axis", -1), real("epsilon", norm.epsilon)};
  if (shape(node.inputs[0]).rank() == 2) {
    return emit(node, "LayerNormalization", {src, parameters[0], parameters[1]}, dst, attributes);
  }
  const std::string last = between(node), normed = between(node);
  emit(node, "Transpose", {src}, last, {integers("perm", {0, 2, 3, 1})});
  emit(node, "LayerNormalization", {last, parameters[0], parameters[1]}, normed, attributes);
  emit(node, "Transpose", {normed}, dst, {integers("perm", {0, 3, 1, 2})});
}

// As PyTorch writes it.
void Exporter::add_group_norm(const Node& node, const LayerNormAttributes& norm) {
  const ValueId src = node.inputs[0];
  const auto groups = static_cast<std::size_t>(norm.groups);
  const std::string grouped = between(node), normed = between(node), sizes = between(node),
                    whole = between(node), scaled = between(node);
  emit(node, "Reshape", {name(src), constant({0, norm.groups, -1})}, grouped);
  emit(node, "InstanceNormalization",
       {grouped, constant({norm.groups}, std::vector<double>(groups, 1.0)),
        constant({norm.groups}, std::vector<double>(groups, 0.0))},
       normed, {real("epsilon", norm.epsilon)});
  emit(node, "Shape", {name(src)}, sizes);
  emit(node, "Reshape", {normed, sizes}, whole);
  emit(node, "Mul", {whole, per_channel(node.inputs[1], src)}, scaled);
  emit(node, "Add", {scaled, per_channel(node.inputs[2], src)}, name(node.outputs[0]));
}

void Exporter::add_reshape(const Node& node) {
  const Shape &from = shape(node.inputs[0]), &to = shape(node.outputs[0]);
  if (to.rank() == 2 && from[0] == to[0]) {
    return emit(node, "Flatten", {name(node.inputs[0])}, name(node.outputs[0]),
                {integer("axis", 1)});
  }
  Dims target = {0};  // the batch
  for (int axis = 1; axis < to.rank(); ++axis) target.push_back(to[axis]);
  emit(node, "Reshape", {name(node.inputs[0]), constant(target)}, name(node.outputs[0]));
}

void Exporter::add_shuffle(const Node& node) {
  const std::int64_t groups = std::get<ShuffleAttributes>(node.attributes).groups;
  const Shape& image = shape(node.inputs[0]);
  const std::string cut = between(node), turned = between(node);
  emit(node, "Reshape",
       {name(node.inputs[0]), constant({0, groups, image[1] / groups, image[2], image[3]})}, cut);
  emit(node, "Transpose", {cut}, turned, {integers("perm", {0, 2, 1, 3, 4})});
  emit(node, "Reshape", {turned, constant({0, image[1], image[2], image[3]})},
       name(node.outputs[0]));
}

void Exporter::add_pad(const Node& node) {
  const auto& pad = std::get<PadAttributes>(node.attributes);
  const Dims amounts = {0, pad.channels_before, pad.top,    pad.left,
                        0, pad.channels_behind, pad.bottom, pad.right};
  emit(node, "Pad", {name(node.inputs[0]), constant(amounts)}, name(node.outputs[0]));
}

void Exporter::add_resize(const Node& node) {
  const auto& resize = std::get<ResizeAttributes>(node.attributes);
  const std::string sizes = between(node), kept = between(node), wanted = between(node);
  const std::string src = name(node.inputs[0]);
  emit(node, "Shape", {src}, sizes);
  emit(node, "Slice", {sizes, constant({0}), constant({2})}, kept);
  emit(node, "Concat", {kept, constant({resize.dst_h, resize.dst_w})}, wanted,
       {integer("axis", 0)});
  emit(node, "Resize", {src, "", "", wanted}, name(node.outputs[0]),
       {text("mode", "nearest"), text("coordinate_transformation_mode", "asymmetric"),
        text("nearest_mode", "floor")});
}

// Factors that training leaves as they are and that are all the same become a single number.
void Exporter::add_multiply(const Node& node) {
  const bool parameter = is_weights(node.inputs[1]);
  std::string factor;
  if (!parameter) {
    factor = name(node.inputs[1]);
  } else if (graph_.value(node.inputs[1]).role == Role::parameter) {
    factor = per_channel(node.inputs[1], node.inputs[0]);
  } else {
    const std::vector<double> values = network_.values(graph_.value(node.inputs[1]).name);
    const bool same =
        std::all_of(values.begin(), values.end(), [&](double value) { return value == values[0]; });
    factor = same ? number(values[0]) : per_channel(node.inputs[1], node.inputs[0]);
  }
  emit(node, "Mul", {name(node.inputs[0]), factor}, name(node.outputs[0]));
}

void Exporter::add_split(const Node& node) {
  const auto& split = std::get<SplitAttributes>(node.attributes);
  emit(node, "Split", {name(node.inputs[0]), constant(split.channels)}, name(node.outputs[0]),
       {integer("axis", 1)});
  for (std::size_t i = 1; i < node.outputs.size(); ++i) {
    model_.nodes.back().outputs.push_back(name(node.outputs[i]));
  }
}

void Exporter::add(NodeId id) {
  const Node& node = graph_.node(id);
  const auto all_inputs = [&] {
    std::vector<std::string> names;
    for (const ValueId input : node.inputs) names.push_back(name(input));
    return names;
  };
  switch (node.kind) {
    case OpKind::conv2d:
    case OpKind::linear:
      return add_product(node);
    case OpKind::bias:
      if (std::find(joined_.begin(), joined_.end(), id) != joined_.end()) return;
      return emit(node, "Add", {name(node.inputs[0]), per_channel(node.inputs[1], node.inputs[0])},
                  name(node.outputs[0]));
    case OpKind::activation:
      return add_activation(node);
    case OpKind::pool:
      return add_pool(node);
    case OpKind::bn_statistics:
    case OpKind::bn_update_running:
      return;
    case OpKind::bn_apply:
      return add_batch_norm(node);
    case OpKind::layer_norm:
      return add_layer_norm(node);
    case OpKind::add:
      return emit(node, "Add", all_inputs(), name(node.outputs[0]));
    case OpKind::multiply:
      return add_multiply(node);
    case OpKind::concat:
      return emit(node, "Concat", all_inputs(), name(node.outputs[0]), {integer("axis", 1)});
    case OpKind::slice: {
      const auto& slice = std::get<SliceAttributes>(node.attributes);
      return emit(node, "Slice",
                  {name(node.inputs[0]), constant({slice.begin}),
                   constant({slice.begin + slice.channels}), constant({1})},
                  name(node.outputs[0]));
    }
    case OpKind::split:
      return add_split(node);
    case OpKind::shuffle:
      return add_shuffle(node);
    case OpKind::pad:
      return add_pad(node);
    case OpKind::resize:
      return add_resize(node);
    case OpKind::reshape:
      return add_reshape(node);
    case OpKind::dropout: {
      const auto& dropout = std::get<DropoutAttributes>(node.attributes);
      emit(node, "Dropout", {name(node.inputs[0]), exact_number(dropout.probability)},
           name(node.outputs[0]));
      if (dropout.per_sample) {
        model_.nodes.back().name = fmt::format("{}/{}", node.layer, kStochasticDepth);
      }
      return;
    }
    default:
      fail("{} cannot be written to an ONNX file", name_of(node.kind));
  }
}

}  // namespace

std::vector<double> adaptive_shares(std::int64_t src, std::int64_t dst) {
  std::vector<double> shares(static_cast<std::size_t>(src * dst), 0.0);
  for (std::int64_t window = 0; window < dst; ++window) {
    const AdaptiveWindow pixels = adaptive_window(window, src, dst);
    for (std::int64_t pixel = pixels.begin; pixel < pixels.end; ++pixel) {
      shares[static_cast<std::size_t>(pixel * dst + window)] =
          1.0 / static_cast<double>(pixels.size());
    }
  }
  return shares;
}

Model export_network(const ExportedNetwork& network) { return Exporter(network).run(); }

}  // namespace ridgeline::onnx
