// Softmax cross-entropy, its gradient and the metrics, alone and in one kernel, with the casts that
// mixed precision puts before and behind them.

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "backends/cuda/common.h"
#include "backends/cuda/rows.h"
#include "backends/cuda/training/loss_kernels.h"

namespace ridgeline::cuda {
namespace {

LossMatrix matrix_of(const Tensor& tensor) {
  return {tensor.data, rows_of(tensor).stride, tensor.spec.dtype};
}

bool contains(const std::vector<NodeId>& nodes, NodeId node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

// softmax_cross_entropy, with whatever else the pattern has.
class Loss final : public Kernel {
 public:
  explicit Loss(const Problem& problem) : shape_(problem.input(0).shape) {
    for (const NodeId id : problem.nodes) {
      const Node& node = problem.graph->node(id);
      if (node.kind == OpKind::softmax_cross_entropy) {
        attributes_ = std::get<LossAttributes>(node.attributes);
        labels_ = problem.input_index(node.inputs[1]);
        loss_ = problem.find_output(node.outputs[0]);
        probabilities_ = problem.find_output(node.outputs[1]);
      } else if (node.kind == OpKind::metrics) {
        totals_ = problem.input_index(node.inputs[0]);
        new_totals_ = problem.find_output(node.outputs[0]);
      } else if (node.kind == OpKind::softmax_cross_entropy_backward) {
        diff_logits_ = problem.find_output(node.outputs[0]);
        diff_weight_ = std::get<LossAttributes>(node.attributes).weight;
      } else if (contains(problem.nodes, problem.graph->value(node.inputs[0]).producer)) {
        cast_diff_logits_ = problem.find_output(node.outputs[0]);
      }
    }
    workspace_bytes = static_cast<std::size_t>(loss_workspace_bytes());
  }

  void run(const KernelArgs& args) const override {
    LossTask task;
    task.logits = matrix_of(args.inputs[0]);
    task.labels = args.inputs[labels_].as<std::int32_t>();
    task.rows = shape_[0];
    task.classes = shape_[1];
    task.smoothing = attributes_.label_smoothing;
    task.weight = attributes_.weight;
    task.diff_weight = diff_weight_;
    if (probabilities_) task.probabilities = matrix_of(args.outputs[*probabilities_]);
    if (diff_logits_) task.diff_logits = matrix_of(args.outputs[*diff_logits_]);
    if (cast_diff_logits_) task.cast_diff_logits = matrix_of(args.outputs[*cast_diff_logits_]);
    if (loss_) task.loss = args.outputs[*loss_].as<float>();
    if (new_totals_) {
      task.totals = args.inputs[totals_].as<double>();
      task.new_totals = args.outputs[*new_totals_].as<double>();
    }
    launch_loss(task, args.state, args.workspace, stream_of(args));
  }

 private:
  Shape shape_;
  LossAttributes attributes_;
  double diff_weight_ = 1.0;
  std::size_t labels_ = 1, totals_ = 0;
  std::optional<std::size_t> loss_, probabilities_, new_totals_, diff_logits_, cast_diff_logits_;
};

class LossBackward final : public Kernel {
 public:
  explicit LossBackward(const Problem& problem)
      : attributes_(std::get<LossAttributes>(problem.node().attributes)) {}

  void run(const KernelArgs& args) const override {
    if (args.outputs[0].data == nullptr) return;
    LossTask task;
    task.probabilities = matrix_of(args.inputs[0]);
    task.diff_logits = matrix_of(args.outputs[0]);
    task.labels = args.inputs[1].as<std::int32_t>();
    task.rows = args.inputs[0].shape()[0];
    task.classes = args.inputs[0].shape()[1];
    task.smoothing = attributes_.label_smoothing;
    task.diff_weight = attributes_.weight;
    launch_loss_backward(task, args.state, stream_of(args));
  }

 private:
  LossAttributes attributes_;
};

class Metrics final : public Kernel {
 public:
  Metrics() { workspace_bytes = static_cast<std::size_t>(loss_workspace_bytes()); }

  void run(const KernelArgs& args) const override {
    const Tensor& logits = args.inputs[2];
    LossTask task;
    task.logits = matrix_of(logits);
    task.labels = args.inputs[3].as<std::int32_t>();
    task.rows = logits.shape()[0];
    task.classes = logits.shape()[1];
    task.totals = args.inputs[0].as<double>();
    task.new_totals = args.outputs[0].as<double>();
    task.given_loss = args.inputs[1].as<float>();
    launch_loss(task, args.state, args.workspace, stream_of(args));
  }
};

bool is_narrow(DType dtype) { return dtype == DType::bf16 || dtype == DType::f16; }

// The ops compute in f32; other types come and go by casts.
std::string check_loss(const Problem& problem) {
  for (const NodeId id : problem.nodes) {
    const Node& node = problem.graph->node(id);
    if (node.kind == OpKind::cast) continue;
    for (const auto* values : {&node.inputs, &node.outputs}) {
      for (const ValueId value : *values) {
        const TensorSpec& spec = problem.graph->value(value).spec;
        const bool number = is_float(spec.dtype) && spec.shape != Shape{4};
        if (number && spec.dtype != DType::f32) {
          return fmt::format("the loss is computed in f32, not {}", name_of(spec.dtype));
        }
      }
    }
  }
  return {};
}

void finish(Kernel& kernel, const Problem& problem, bool in_place) {
  set_layouts(kernel, problem, Layout::plain());
  kernel.traits.slices = true;
  kernel.traits.in_place = in_place;
}

std::unique_ptr<Kernel> make_loss(const Problem& problem, std::span<const Layout>) {
  auto kernel = std::make_unique<Loss>(problem);
  finish(*kernel, problem, false);
  return kernel;
}

std::unique_ptr<Kernel> make_backward(const Problem& problem, std::span<const Layout>) {
  auto kernel = std::make_unique<LossBackward>(problem);
  finish(*kernel, problem, true);
  return kernel;
}

std::unique_ptr<Kernel> make_metrics(const Problem& problem, std::span<const Layout>) {
  auto kernel = std::make_unique<Metrics>();
  finish(*kernel, problem, true);
  return kernel;
}

// A value of f32 that is a narrower one cast: that one; else the value itself.
ValueId before_cast(const Graph& graph, ValueId value) {
  const NodeId producer = graph.value(value).producer;
  if (producer == kNoNode || graph.node(producer).kind != OpKind::cast) return value;
  const ValueId source = graph.node(producer).inputs[0];
  const bool widens =
      is_narrow(graph.value(source).spec.dtype) && graph.value(value).spec.dtype == DType::f32;
  return widens ? source : value;
}

// The loss with the metrics of the same logits, the gradient and its casts, as far as they are
// there.
std::vector<NodeId> nodes_around(const Graph& graph, NodeId loss_node) {
  const Node& loss = graph.node(loss_node);
  std::vector<NodeId> nodes = {loss_node};
  for (const NodeId user : graph.value(loss.outputs[0]).users) {
    const Node& metrics = graph.node(user);
    const bool same = metrics.kind == OpKind::metrics && metrics.inputs[1] == loss.outputs[0] &&
                      before_cast(graph, metrics.inputs[2]) == before_cast(graph, loss.inputs[0]) &&
                      metrics.inputs[3] == loss.inputs[1];
    if (same) nodes.push_back(user);
  }
  for (const NodeId user : graph.value(loss.outputs[1]).users) {
    const Node& backward = graph.node(user);
    const bool same = backward.kind == OpKind::softmax_cross_entropy_backward &&
                      backward.inputs[0] == loss.outputs[1] && backward.inputs[1] == loss.inputs[1];
    if (!same) continue;
    nodes.push_back(user);
    for (const NodeId reader : graph.value(backward.outputs[0]).users) {
      const bool cast = graph.node(reader).kind == OpKind::cast &&
                        is_narrow(graph.value(graph.node(reader).outputs[0]).spec.dtype);
      if (cast) nodes.push_back(reader);
    }
  }
  return nodes;
}

// No op more than once, and one cast behind the gradient at most: that is what the kernel can do.
bool at_most_one_each(const Graph& graph, const std::vector<NodeId>& nodes) {
  for (const OpKind kind :
       {OpKind::metrics, OpKind::softmax_cross_entropy_backward, OpKind::cast}) {
    const auto count = std::count_if(nodes.begin(), nodes.end(),
                                     [&](NodeId id) { return graph.node(id).kind == kind; });
    if (count > 1) return false;
  }
  return true;
}

std::vector<NodeId> match_loss(const Graph& graph, NodeId first) {
  if (graph.node(first).kind != OpKind::softmax_cross_entropy) return {};
  std::vector<NodeId> nodes = nodes_around(graph, first);
  // Metrics that read another cast of the logits would need that cast inside.
  std::erase_if(nodes, [&](NodeId id) {
    const Node& node = graph.node(id);
    return node.kind == OpKind::metrics && node.inputs[2] != graph.node(first).inputs[0];
  });
  if (nodes.size() == 1 || !at_most_one_each(graph, nodes)) return {};
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

// The same with the casts before it, which no other op may need.
std::vector<NodeId> match_cast_loss(const Graph& graph, NodeId first) {
  const Node& cast = graph.node(first);
  if (cast.kind != OpKind::cast || before_cast(graph, cast.outputs[0]) == cast.outputs[0]) {
    return {};
  }
  std::vector<NodeId> casts;
  NodeId loss = kNoNode;
  for (const NodeId reader : graph.value(cast.inputs[0]).users) {
    const Node& other = graph.node(reader);
    if (other.kind != OpKind::cast || other.outputs.empty()) continue;
    if (before_cast(graph, other.outputs[0]) != cast.inputs[0]) continue;
    casts.push_back(reader);
    for (const NodeId user : graph.value(other.outputs[0]).users) {
      const Node& node = graph.node(user);
      if (node.kind == OpKind::softmax_cross_entropy && node.inputs[0] == other.outputs[0]) {
        loss = user;
      }
    }
  }
  if (loss == kNoNode) return {};
  std::vector<NodeId> nodes = nodes_around(graph, loss);
  if (!at_most_one_each(graph, nodes)) return {};
  const std::vector<NodeId> inside = nodes;
  for (const NodeId id : casts) {
    const Value& wide = graph.value(graph.node(id).outputs[0]);
    const auto is_inside = [&](NodeId user) { return contains(inside, user); };
    if (std::none_of(wide.users.begin(), wide.users.end(), is_inside)) continue;
    const bool hidden = std::all_of(wide.users.begin(), wide.users.end(), is_inside) &&
                        !graph.is_output(graph.node(id).outputs[0]) && !is_persistent(wide.role);
    if (!hidden) return {};
    nodes.push_back(id);
  }
  std::sort(nodes.begin(), nodes.end());
  if (nodes.front() != first) return {};
  return nodes;
}

constexpr KernelRow kRows[] = {
    {"cast_loss", match_cast_loss, check_loss, make_loss},
    {"loss", match_loss, check_loss, make_loss},
    {"softmax_cross_entropy", match_one<OpKind::softmax_cross_entropy>, check_loss, make_loss},
    {"softmax_cross_entropy_backward", match_one<OpKind::softmax_cross_entropy_backward>,
     check_loss, make_backward},
    {"metrics", match_one<OpKind::metrics>, check_loss, make_metrics},
};

}  // namespace

std::span<const KernelRow> loss_rows() { return kRows; }

}  // namespace ridgeline::cuda
