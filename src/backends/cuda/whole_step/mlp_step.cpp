// The row for the whole training step of a small perceptron, from pixels or features to the
// gradients of all parameters, the loss and the metrics.

#include <algorithm>
#include <optional>

#include "backends/cuda/common.h"
#include "backends/cuda/rows.h"
#include "backends/cuda/whole_step/mlp_step_kernels.h"
#include "backends/cuda/whole_step/step_walk.h"
#include "backends/cuda/whole_step/step_workspace.h"
#include "base/error.h"

namespace ridgeline::cuda {
namespace {

struct MlpNodes {
  NodeId normalize = kNoNode, reshape = kNoNode;
  DenseNodes hidden, logits;
  LossNodes loss;
};

ValueId input_of(const Graph& graph, NodeId node, std::size_t index = 0) {
  return graph.node(node).inputs[index];
}
ValueId output_of(const Graph& graph, NodeId node) { return graph.node(node).outputs[0]; }

// The step that begins with this node, if one does.
std::optional<MlpNodes> find_step(const Graph& graph, NodeId first) {
  MlpNodes nodes;
  const Node& node = graph.node(first);
  ValueId start = kNoValue;
  if (node.kind == OpKind::normalize) {
    nodes.normalize = first;
    start = node.outputs[0];
  } else if (node.kind == OpKind::linear) {
    start = node.inputs[0];
  } else {
    return std::nullopt;
  }
  StepWalk walk(graph, start);
  if (nodes.normalize != kNoNode) {
    nodes.reshape = walk.through(OpKind::reshape);
    if (nodes.reshape == kNoNode) return std::nullopt;
  }
  const bool found = walk.dense(nodes.hidden) && walk.dense(nodes.logits) &&
                     nodes.logits.activation == kNoNode && walk.loss(nodes.loss) &&
                     walk.dense_backward(nodes.logits, false) &&
                     walk.dense_backward(nodes.hidden, true);
  if (!found) return std::nullopt;
  return nodes;
}

std::vector<NodeId> match(const Graph& graph, NodeId first) {
  const std::optional<MlpNodes> nodes = find_step(graph, first);
  if (!nodes) return {};
  std::vector<NodeId> all = {nodes->normalize, nodes->reshape};
  for (const std::vector<NodeId>& some :
       {nodes->hidden.all(), nodes->logits.all(), nodes->loss.all()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return in_order(std::move(all), first);
}

std::string check_sizes(const Graph& graph, const MlpNodes& nodes) {
  const Shape& weights1 = graph.value(input_of(graph, nodes.hidden.linear, 1)).spec.shape;
  const Shape& weights2 = graph.value(input_of(graph, nodes.logits.linear, 1)).spec.shape;
  if (weights1[1] > kMaxMlpInputs) {
    return fmt::format("{} inputs; mlp_step takes up to {}", weights1[1], kMaxMlpInputs);
  }
  if (weights1[0] > kMaxMlpHidden) {
    return fmt::format("{} hidden units; mlp_step takes up to {}", weights1[0], kMaxMlpHidden);
  }
  if (weights2[0] > kMaxMlpClasses) {
    return fmt::format("{} classes; mlp_step takes up to {}", weights2[0], kMaxMlpClasses);
  }
  return {};
}

std::string check(const Problem& problem) {
  const Graph& graph = *problem.graph;
  const MlpNodes nodes = *find_step(graph, problem.nodes[0]);
  std::string reason = check_boundary(problem, nodes.loss,
                                      {nodes.hidden.weights_backward, nodes.hidden.bias_backward,
                                       nodes.logits.weights_backward, nodes.logits.bias_backward});
  if (!reason.empty()) return reason;
  if (nodes.hidden.activation != kNoNode) {
    const auto& a = std::get<ActivationAttributes>(graph.node(nodes.hidden.activation).attributes);
    if (backward_uses_src(a.kind)) {
      return fmt::format("{} needs what mlp_step does not keep", name_of(a.kind));
    }
  }
  if (nodes.normalize != kNoNode) {
    reason = check_normalize(graph.node(nodes.normalize));
    if (!reason.empty()) return reason;
    const Shape& shape = graph.value(output_of(graph, nodes.reshape)).spec.shape;
    if (shape[0] != graph.value(input_of(graph, nodes.normalize)).spec.shape[0]) {
      return "the reshape does not keep the samples apart";
    }
  }
  return check_sizes(graph, nodes);
}

class MlpStepKernel final : public Kernel {
 public:
  explicit MlpStepKernel(const Problem& problem) {
    const Graph& graph = *problem.graph;
    const MlpNodes nodes = *find_step(graph, problem.nodes[0]);
    describe(graph, nodes);
    find_places(problem, nodes);
    loss_.emplace(problem, nodes.loss);
    const DeviceLimits& device = device_limits();
    pixel_plan_ = pixels_ ? plan_mlp_pixels(step_, device) : MlpPixelPlan{};
    if (pixel_plan_.blocks > 0) {
      forward_blocks_ = slices_ = pixel_plan_.blocks;
      implementation = "one pass, f16 pieces on tensor cores";
      unit = "tensor fp16";
    } else {
      general_plan_ = plan_mlp_general(step_, device.multiprocessors);
      forward_blocks_ = general_plan_.forward_blocks;
      slices_ = general_plan_.slices;
      implementation = "two passes on CUDA cores";
    }
    workspace_bytes = carve(nullptr, step_);
    set_layouts(*this, problem, Layout::plain());
  }

  void run(const KernelArgs& args) const override {
    MlpStep step = step_;
    if (pixels_) {
      step.pixels = args.inputs[src_].as<const std::uint8_t>();
    } else {
      step.floats = args.inputs[src_].as<const float>();
    }
    step.labels = args.inputs[loss_->labels].as<const std::int32_t>();
    step.state = args.state;
    step.weights1 = args.inputs[weights1_].as<const float>();
    step.bias1 = args.inputs[bias1_].as<const float>();
    step.weights2 = args.inputs[weights2_].as<const float>();
    step.bias2 = args.inputs[bias2_].as<const float>();
    carve(args.workspace, step);
    if (pixel_plan_.blocks > 0) {
      launch_mlp_pixels(step, pixel_plan_, stream_of(args));
    } else {
      launch_mlp_general(step, general_plan_, stream_of(args));
    }
    add_up(step, args);
  }

 private:
  void describe(const Graph& graph, const MlpNodes& nodes) {
    const Shape& weights = graph.value(input_of(graph, nodes.hidden.linear, 1)).spec.shape;
    step_.rows = graph.value(input_of(graph, nodes.hidden.linear)).spec.shape[0];
    step_.inputs = static_cast<int>(weights[1]);
    step_.hidden = static_cast<int>(weights[0]);
    step_.classes =
        static_cast<int>(graph.value(input_of(graph, nodes.logits.linear, 1)).spec.shape[0]);
    step_.smoothing = smoothing_of(graph, nodes.loss);
    step_.diff_weight = diff_weight_of(graph, nodes.loss);
    if (nodes.hidden.activation != kNoNode) {
      const auto& a =
          std::get<ActivationAttributes>(graph.node(nodes.hidden.activation).attributes);
      step_.activation = static_cast<int>(a.kind);
      step_.slope = static_cast<float>(a.slope);
    }
    pixels_ = nodes.normalize != kNoNode;
    if (!pixels_) return;
    const PixelScale scale = pixel_scale_of(graph.node(nodes.normalize));
    step_.scale = scale.scale;
    step_.shift = scale.shift;
  }

  void find_places(const Problem& problem, const MlpNodes& nodes) {
    const Graph& graph = *problem.graph;
    const auto input = [&](NodeId node, std::size_t index) {
      return problem.input_index(input_of(graph, node, index));
    };
    const auto output = [&](NodeId node) { return problem.output_index(output_of(graph, node)); };
    src_ = input(pixels_ ? nodes.normalize : nodes.hidden.linear, 0);
    weights1_ = input(nodes.hidden.linear, 1);
    bias1_ = input(nodes.hidden.bias, 1);
    weights2_ = input(nodes.logits.linear, 1);
    bias2_ = input(nodes.logits.bias, 1);
    diff_weights1_ = output(nodes.hidden.weights_backward);
    diff_bias1_ = output(nodes.hidden.bias_backward);
    diff_weights2_ = output(nodes.logits.weights_backward);
    diff_bias2_ = output(nodes.logits.bias_backward);
  }

  // Places the step's parts of the workspace; returns the bytes they take.
  std::size_t carve(std::byte* workspace, MlpStep& step) const {
    const std::int64_t weights = std::int64_t{step.hidden} * step.inputs;
    StepWorkspace space(workspace);
    step.small_partials = space.take<float>(std::int64_t{forward_blocks_} * small_stride(step));
    step.weight_partials = space.take<float>(slices_ * weights);
    if (pixel_plan_.blocks == 0) step.diff_hidden = space.take<float>(step.rows * step.hidden);
    return space.bytes();
  }

  void add_up(const MlpStep& step, const KernelArgs& args) const {
    const auto gradient = [&](std::size_t index) { return args.outputs[index].as<float>(); };
    PartialSums weights;
    weights.partials = step.weight_partials;
    weights.stride = std::int64_t{step.hidden} * step.inputs;
    weights.parts = slices_;
    weights.add_segment(step.hidden * step.inputs, gradient(diff_weights1_));
    PartialSums small;
    small.partials = step.small_partials;
    small.stride = small_stride(step);
    small.parts = forward_blocks_;
    small.add_segment(step.classes * step.hidden, gradient(diff_weights2_));
    small.add_segment(step.classes, gradient(diff_bias2_));
    small.add_segment(step.hidden, gradient(diff_bias1_));
    LossTotals loss;
    loss.sums = step.small_partials + small_gradients(step);
    loss.stride = small_stride(step);
    loss.parts = forward_blocks_;
    loss.rows = step.rows;
    loss.state = step.state;
    if (loss_->loss) loss.loss = args.outputs[*loss_->loss].as<float>();
    if (loss_->new_totals) {
      loss.totals = args.inputs[loss_->totals].as<const double>();
      loss.new_totals = args.outputs[*loss_->new_totals].as<double>();
    }
    launch_mlp_sums(weights, small, loss, stream_of(args));
  }

  MlpStep step_;  // without pointers
  bool pixels_ = false;
  MlpPixelPlan pixel_plan_;
  MlpGeneralPlan general_plan_;
  int forward_blocks_ = 0, slices_ = 0;
  std::optional<LossPlaces> loss_;
  std::size_t src_ = 0, weights1_ = 0, bias1_ = 0, weights2_ = 0, bias2_ = 0;
  std::size_t diff_weights1_ = 0, diff_bias1_ = 0, diff_weights2_ = 0, diff_bias2_ = 0;
};

std::unique_ptr<Kernel> make(const Problem& problem, std::span<const Layout>) {
  return std::make_unique<MlpStepKernel>(problem);
}

constexpr KernelRow kRows[] = {{"mlp_step", match, check, make}};

}  // namespace

std::span<const KernelRow> mlp_step_rows() { return kRows; }

}  // namespace ridgeline::cuda
