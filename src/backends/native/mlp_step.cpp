#include "backends/native/mlp_step.h"

#include <algorithm>
#include <optional>

#include "backends/native/mlp_block.h"
#include "backends/native/rows.h"
#include "base/error.h"
#include "base/parallel.h"

namespace ridgeline::native {
namespace {

// One layer's nodes; kNoNode for what it has not.
struct LayerNodes {
  NodeId linear = kNoNode, bias = kNoNode, activation = kNoNode;
  NodeId activation_backward = kNoNode, bias_backward = kNoNode;
  NodeId weights_backward = kNoNode, data_backward = kNoNode;
};

struct StepNodes {
  NodeId normalize = kNoNode, reshape = kNoNode;
  std::vector<LayerNodes> layers;
  NodeId loss = kNoNode, metrics = kNoNode, loss_backward = kNoNode;
};

// The user of a value that is of a kind and has it as input `index`.
NodeId user_of(const Graph& graph, ValueId value, OpKind kind, std::size_t index = 0) {
  for (const NodeId user : graph.value(value).users) {
    const Node& node = graph.node(user);
    if (node.kind == kind && node.inputs[index] == value) return user;
  }
  return kNoNode;
}

ValueId output_of(const Graph& graph, NodeId node) { return graph.node(node).outputs[0]; }

// Follows the value through a node of a kind, if there is one.
NodeId follow(const Graph& graph, OpKind kind, ValueId& value) {
  const NodeId node = user_of(graph, value, kind);
  if (node != kNoNode) value = output_of(graph, node);
  return node;
}

bool find_forward(const Graph& graph, ValueId value, StepNodes& step) {
  while ((step.loss = user_of(graph, value, OpKind::softmax_cross_entropy)) == kNoNode) {
    LayerNodes layer;
    layer.linear = follow(graph, OpKind::linear, value);
    if (layer.linear == kNoNode) return false;
    layer.bias = follow(graph, OpKind::bias, value);
    layer.activation = follow(graph, OpKind::activation, value);
    step.layers.push_back(layer);
  }
  return !step.layers.empty();
}

bool find_backward(const Graph& graph, StepNodes& step) {
  const Node& loss = graph.node(step.loss);
  step.metrics = user_of(graph, loss.outputs[0], OpKind::metrics, 1);
  step.loss_backward = user_of(graph, loss.outputs[1], OpKind::softmax_cross_entropy_backward);
  if (step.loss_backward == kNoNode) return false;
  ValueId diff = output_of(graph, step.loss_backward);
  for (std::size_t i = step.layers.size(); i-- > 0;) {
    LayerNodes& layer = step.layers[i];
    if (layer.activation != kNoNode) {
      layer.activation_backward = follow(graph, OpKind::activation_backward, diff);
      if (layer.activation_backward == kNoNode) return false;
    }
    layer.bias_backward = user_of(graph, diff, OpKind::bias_backward);
    layer.weights_backward = user_of(graph, diff, OpKind::linear_backward_weights, 1);
    if (layer.weights_backward == kNoNode) return false;
    if ((layer.bias == kNoNode) != (layer.bias_backward == kNoNode)) return false;
    layer.data_backward = follow(graph, OpKind::linear_backward_data, diff);
    if ((layer.data_backward == kNoNode) != (i == 0)) return false;
  }
  return true;
}

const LossAttributes& loss_of(const Graph& graph, const StepNodes& step) {
  return std::get<LossAttributes>(graph.node(step.loss).attributes);
}

// The step that begins with this node, if one does.
std::optional<StepNodes> find_step(const Graph& graph, NodeId first) {
  StepNodes step;
  const Node& node = graph.node(first);
  ValueId value = kNoValue;
  if (node.kind == OpKind::normalize) {
    step.normalize = first;
    value = node.outputs[0];
    step.reshape = follow(graph, OpKind::reshape, value);
    if (step.reshape == kNoNode) return std::nullopt;
  } else if (node.kind == OpKind::linear) {
    value = node.inputs[0];
  } else {
    return std::nullopt;
  }
  if (!find_forward(graph, value, step) || !find_backward(graph, step)) return std::nullopt;
  if (step.normalize == kNoNode && step.layers[0].linear != first) return std::nullopt;
  if (loss_of(graph, step).weight != 1.0) return std::nullopt;
  return step;
}

bool alike(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [&](double v) { return v == values[0]; });
}

MlpNetwork network_of(const Graph& graph, const StepNodes& step) {
  MlpNetwork network;
  for (const LayerNodes& nodes : step.layers) {
    const Shape& weights = graph.value(graph.node(nodes.linear).inputs[1]).spec.shape;
    MlpLayer& layer = network.layers[network.depth++];
    layer.outputs = weights[0];
    layer.inputs = weights[1];
    if (nodes.activation == kNoNode) continue;
    const auto& a = std::get<ActivationAttributes>(graph.node(nodes.activation).attributes);
    layer.activate = true;
    layer.activation = a.kind;
    layer.slope = static_cast<float>(a.slope);
  }
  return network;
}

class MlpStep final : public Kernel {
 public:
  explicit MlpStep(const Problem& problem) : slots_(thread_count()) {
    const Graph& graph = *problem.graph;
    const StepNodes step = *find_step(graph, problem.nodes[0]);
    network_ = network_of(graph, step);
    smoothing_ = loss_of(graph, step).label_smoothing;
    diff_weight_ = std::get<LossAttributes>(graph.node(step.loss_backward).attributes).weight;
    pixels_ = step.normalize != kNoNode;
    if (pixels_) {
      const auto& a = std::get<NormalizeAttributes>(graph.node(step.normalize).attributes);
      scale_ = static_cast<float>(1.0 / (255.0 * a.deviation[0]));
      shift_ = static_cast<float>(-a.mean[0] / a.deviation[0]);
    }
    src_ =
        problem.input_index(graph.node(pixels_ ? step.normalize : step.layers[0].linear).inputs[0]);
    labels_ = problem.input_index(graph.node(step.loss).inputs[1]);
    loss_ = index_of(problem, graph.node(step.loss).outputs[0]);
    if (step.metrics != kNoNode) {
      totals_ = problem.input_index(graph.node(step.metrics).inputs[0]);
      new_totals_ = index_of(problem, output_of(graph, step.metrics));
    }
    for (const LayerNodes& nodes : step.layers) {
      LayerPlace& place = layers_.emplace_back();
      place.weights = problem.input_index(graph.node(nodes.linear).inputs[1]);
      place.diff_weights = problem.output_index(output_of(graph, nodes.weights_backward));
      if (nodes.bias == kNoNode) continue;
      place.bias = problem.input_index(graph.node(nodes.bias).inputs[1]);
      place.diff_bias = problem.output_index(output_of(graph, nodes.bias_backward));
    }
    workspace_bytes = mlp_workspace_bytes(network_, slots_);
    input_layouts.assign(problem.inputs.size(), Layout::plain());
    output_layouts.assign(problem.outputs.size(), Layout::plain());
  }

  void run(const KernelArgs& args) const override {
    MlpNetwork network = network_;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      MlpLayer& layer = network.layers[i];
      layer.weights = args.inputs[layers_[i].weights].as<const float>();
      layer.diff_weights = args.outputs[layers_[i].diff_weights].as<float>();
      if (!layers_[i].bias) continue;
      layer.bias = args.inputs[*layers_[i].bias].as<const float>();
      layer.diff_bias = args.outputs[layers_[i].diff_bias].as<float>();
    }
    const Tensor& src = args.inputs[src_];
    MlpInput input;
    if (pixels_) {
      input.pixels = src.as<const std::uint8_t>();
      input.scale = scale_;
      input.shift = shift_;
    } else {
      input.floats = src.as<const float>();
    }
    input.row_stride = src.strides[0];
    input.rows = src.shape()[0];
    input.valid = std::min(args.state->valid_rows, input.rows);
    input.labels = args.inputs[labels_].as<const std::int32_t>();
    check_labels({input.labels, static_cast<std::size_t>(input.valid)},
                 network.layers[network.depth - 1].outputs);
    MlpLoss options;
    options.smoothing = static_cast<float>(smoothing_);
    options.rank = new_totals_.has_value();
    const auto valid = static_cast<double>(input.valid);
    if (input.valid > 0) {
      options.diff_scale = static_cast<float>(args.state->loss_scale * diff_weight_ / valid);
    }

    const MlpSums sums = run_mlp_step(network, input, options, slots_, args.workspace);
    const auto loss = static_cast<float>(input.valid == 0 ? 0.0 : sums.loss / valid);
    if (loss_ && args.outputs[*loss_].data != nullptr) *args.outputs[*loss_].as<float>() = loss;
    if (!new_totals_) return;
    const auto* const totals = args.inputs[totals_].as<const double>();
    auto* const new_totals = args.outputs[*new_totals_].as<double>();
    new_totals[0] = totals[0] + static_cast<double>(loss) * valid;
    new_totals[1] = totals[1] + sums.top1;
    new_totals[2] = totals[2] + sums.top5;
    new_totals[3] = totals[3] + valid;
  }

 private:
  // Where a layer's values stand among the arguments.
  struct LayerPlace {
    std::size_t weights = 0, diff_weights = 0, diff_bias = 0;
    std::optional<std::size_t> bias;
  };

  static std::optional<std::size_t> index_of(const Problem& problem, ValueId value) {
    const auto found = std::find(problem.outputs.begin(), problem.outputs.end(), value);
    if (found == problem.outputs.end()) return std::nullopt;
    return static_cast<std::size_t>(found - problem.outputs.begin());
  }

  int slots_;
  MlpNetwork network_;
  double smoothing_ = 0.0;
  double diff_weight_ = 1.0;  // of the gradient: these rows' share of a batch
  bool pixels_ = false;
  float scale_ = 1.0F, shift_ = 0.0F;
  std::size_t src_ = 0, labels_ = 0, totals_ = 0;
  std::optional<std::size_t> loss_, new_totals_;
  std::vector<LayerPlace> layers_;
};

std::string check_sizes(const Graph& graph, const StepNodes& step) {
  if (static_cast<std::int64_t>(step.layers.size()) > kMaxMlpLayers) {
    return fmt::format("{} layers; mlp_step takes up to {}", step.layers.size(), kMaxMlpLayers);
  }
  const MlpNetwork network = network_of(graph, step);
  if (network.layers[0].inputs > kMaxMlpInputs) {
    return fmt::format("{} inputs; mlp_step takes up to {}", network.layers[0].inputs,
                       kMaxMlpInputs);
  }
  for (std::size_t i = 0; i < network.depth; ++i) {
    const MlpLayer& layer = network.layers[i];
    if (layer.outputs > kMaxMlpWidth) {
      return fmt::format("a layer of {} units; mlp_step takes up to {}", layer.outputs,
                         kMaxMlpWidth);
    }
    if (layer.activate && backward_uses_src(layer.activation)) {
      return fmt::format("{} needs what the block does not keep", name_of(layer.activation));
    }
  }
  return {};
}

}  // namespace

std::vector<NodeId> match_mlp_step(const Graph& graph, NodeId first) {
  const std::optional<StepNodes> step = find_step(graph, first);
  if (!step) return {};
  std::vector<NodeId> nodes = {step->normalize, step->reshape, step->loss, step->metrics,
                               step->loss_backward};
  for (const LayerNodes& layer : step->layers) {
    nodes.insert(nodes.end(),
                 {layer.linear, layer.bias, layer.activation, layer.bias_backward,
                  layer.activation_backward, layer.weights_backward, layer.data_backward});
  }
  std::erase(nodes, kNoNode);
  std::sort(nodes.begin(), nodes.end());
  if (nodes[0] != first) return {};
  return nodes;
}

std::string check_mlp_step(const Problem& problem) {
  const Graph& graph = *problem.graph;
  const StepNodes step = *find_step(graph, problem.nodes[0]);
  // All that comes out: gradients, the loss and the totals.
  for (const ValueId id : problem.outputs) {
    const NodeId producer = graph.value(id).producer;
    const bool expected =
        (producer == step.loss && id == graph.node(step.loss).outputs[0]) ||
        producer == step.metrics ||
        std::any_of(step.layers.begin(), step.layers.end(), [&](const LayerNodes& layer) {
          return producer == layer.weights_backward || producer == layer.bias_backward;
        });
    if (!expected) return fmt::format("{} is needed outside the step", graph.value(id).name);
    if (graph.value(id).spec.dtype != DType::f32 && producer != step.metrics) {
      return fmt::format("native computes in f32, not {}", name_of(graph.value(id).spec.dtype));
    }
  }
  if (step.normalize != kNoNode) {
    const auto& a = std::get<NormalizeAttributes>(graph.node(step.normalize).attributes);
    if (a.flip) return "mlp_step mirrors no samples";
    if (!alike(a.mean) || !alike(a.deviation)) return "the channels are normalised differently";
    const Shape& shape = graph.value(output_of(graph, step.reshape)).spec.shape;
    if (shape.rank() != 2 || shape[0] != problem.input(0).shape[0]) {
      return "the reshape does not keep the samples apart";
    }
  }
  return check_sizes(graph, step);
}

std::unique_ptr<Kernel> make_mlp_step(const Problem& problem, std::span<const Layout>) {
  return std::make_unique<MlpStep>(problem);
}

}  // namespace ridgeline::native
