// The gradient of a block's end (layer scale and dropout of samples) and of the bias before it:
// [dropout +] multiply + multiply_backward [+ bias_backward].

#include <algorithm>

#include "backends/cuda/conv/image_rows.h"
#include "backends/cuda/rows.h"
#include "backends/cuda/sums/block_end_kernels.h"
#include "backends/cuda/sums/counters.h"

namespace ridgeline::cuda {
namespace {

// Where the operands stand among the kernel's arguments.
struct Operands {
  std::size_t diff = 0, src = 0, scale = 0;  // inputs
  Index diff_src, diff_scale, diff_bias;     // outputs
  DropoutAttributes dropout{.probability = 0.0};
};

Operands operands_of(const Problem& problem) {
  Operands operands;
  operands.diff = problem.input_index(problem.node().inputs[0]);
  for (std::size_t i = 0; i < problem.nodes.size(); ++i) {
    const Node& node = problem.node(i);
    if (node.kind == OpKind::dropout) {
      operands.dropout = std::get<DropoutAttributes>(node.attributes);
    } else if (node.kind == OpKind::multiply) {
      operands.scale = problem.input_index(node.inputs[1]);
      operands.diff_src = problem.find_output(node.outputs[0]);
    } else if (node.kind == OpKind::multiply_backward) {
      operands.src = problem.input_index(node.inputs[1]);
      operands.diff_scale = problem.find_output(node.outputs[0]);
    } else {
      operands.diff_bias = problem.find_output(node.outputs[0]);
    }
  }
  return operands;
}

class BlockEnd final : public Kernel {
 public:
  BlockEnd(const Operands& operands, const TensorSpec& diff) : operands_(operands) {
    const SumScratch scratch =
        block_end_scratch(diff.dtype, diff.shape.elements() / diff.shape[1], diff.shape[1]);
    workspace_bytes = scratch.bytes;
    counters_ = take_counters(scratch.counters);
  }

  void run(const KernelArgs& args) const override {
    const Tensor& diff = args.inputs[operands_.diff];
    const Shape& shape = diff.shape();
    BlockEndBackward task;
    task.dtype = diff.spec.dtype;
    task.diff = rows_of(diff);
    task.src = rows_of(args.inputs[operands_.src]);
    task.diff_src = rows_at(args.outputs, operands_.diff_src);
    task.scale = args.inputs[operands_.scale].as<float>();
    task.probability = static_cast<float>(operands_.dropout.probability);
    task.layer = operands_.dropout.layer;
    task.state = args.state;
    task.pixels = shape.rank() == 4 ? shape[2] * shape[3] : 1;
    task.diff_scale = floats_at(args.outputs, operands_.diff_scale);
    task.diff_bias = floats_at(args.outputs, operands_.diff_bias);
    task.workspace = args.workspace;
    task.counters = counters_;
    launch_block_end_backward(task, stream_of(args));
  }

 private:
  Operands operands_;
  unsigned* counters_;
};

// The user of a value that takes it as its first input, of a kind; several users may be there.
NodeId user_of_kind(const Graph& graph, ValueId value, OpKind kind) {
  for (const NodeId user : graph.value(value).users) {
    const Node& node = graph.node(user);
    const bool once = std::count(node.inputs.begin(), node.inputs.end(), value) == 1;
    if (node.kind == kind && node.inputs[0] == value && once) return user;
  }
  return kNoNode;
}

// The products of a gradient with a layer scale and with what that scaled, and the bias's gradient.
std::vector<NodeId> products_of(const Graph& graph, ValueId diff) {
  const NodeId product = user_of_kind(graph, diff, OpKind::multiply);
  const NodeId sums = user_of_kind(graph, diff, OpKind::multiply_backward);
  if (product == kNoNode || sums < product) return {};
  const auto& attributes = std::get<MultiplyAttributes>(graph.node(sums).attributes);
  const Value& factor = graph.value(graph.node(product).inputs[1]);
  if (attributes.b != Broadcast::channel || factor.spec.shape.rank() != 1) return {};
  std::vector<NodeId> nodes = {product, sums};
  const NodeId bias = user_of_kind(graph, graph.node(product).outputs[0], OpKind::bias_backward);
  if (bias > sums) nodes.push_back(bias);
  return nodes;
}

std::vector<NodeId> match(const Graph& graph, NodeId first) {
  const Node& node = graph.node(first);
  if (node.kind == OpKind::multiply) {
    const std::vector<NodeId> nodes = products_of(graph, node.inputs[0]);
    return !nodes.empty() && nodes[0] == first ? nodes : std::vector<NodeId>();
  }
  const auto* dropout = std::get_if<DropoutAttributes>(&node.attributes);
  if (dropout == nullptr || !dropout->per_sample) return {};
  const Value& dropped = graph.value(node.outputs[0]);
  if (dropped.users.size() != 2 || graph.is_output(node.outputs[0])) return {};
  std::vector<NodeId> nodes = products_of(graph, node.outputs[0]);
  if (!nodes.empty()) nodes.insert(nodes.begin(), first);
  return nodes;
}

std::unique_ptr<Kernel> make(const Problem& problem, std::span<const Layout>) {
  const Operands operands = operands_of(problem);
  auto kernel = std::make_unique<BlockEnd>(operands, problem.input(operands.diff));
  set_layouts(*kernel, problem, Layout::nhwc());
  kernel->traits.slices = true;
  return kernel;
}

constexpr KernelRow kRows[] = {{"block_end_backward", match, check_channels, make}};

}  // namespace

std::span<const KernelRow> block_end_rows() { return kRows; }

}  // namespace ridgeline::cuda
