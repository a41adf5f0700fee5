// The data gradient of a convolution together with the gradient of the normalisation, and of the
// activation between them, that made its src: conv2d_backward_data [+ add] [+ activation_backward]
// + bn_backward_reduce + bn_backward_apply [+ add]. The sums are taken while the data gradient is
// written. The last add brings another gradient of the normalisation's src, as where DenseNet's
// layers share their inputs.

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cuda/conv/image_rows.h"
#include "backends/cuda/hopper/hopper_plan.h"
#include "backends/cuda/norm/batch_norm_backward_kernels.h"
#include "backends/cuda/rows.h"
#include "backends/cuda/sums/counters.h"
#include "backends/cuda/sums/gradient_sums_kernels.h"
#include "plan/patterns.h"

namespace ridgeline::cuda {
namespace {

// Where the operands stand among the kernel's arguments.
struct Operands {
  std::size_t diff_dst = 0, weights = 0, src = 0, mean = 0, variance = 0, scale = 0;  // inputs
  Index other, kept, plus;                                                            // inputs
  std::size_t diff_src = 0;                                                           // outputs
  Index stored, diff_scale, diff_shift;
  BatchNormAttributes norm;
  std::optional<ActivationAttributes> activation;
};

Operands operands_of(const Problem& problem) {
  Operands operands;
  const Node& root = problem.node();
  operands.diff_dst = problem.input_index(root.inputs[0]);
  operands.weights = problem.input_index(root.inputs[1]);
  for (std::size_t i = 1; i < problem.nodes.size(); ++i) {
    const Node& node = problem.node(i);
    if (node.kind == OpKind::add) {
      const bool last = i + 1 == problem.nodes.size();
      const std::size_t given = node.inputs[0] == problem.node(i - 1).outputs[0] ? 1 : 0;
      (last ? operands.plus : operands.other) = problem.input_index(node.inputs[given]);
    } else if (node.kind == OpKind::activation_backward) {
      operands.kept = problem.input_index(node.inputs[1]);
      operands.activation = std::get<ActivationAttributes>(node.attributes);
    } else if (node.kind == OpKind::bn_backward_reduce) {
      operands.stored = problem.find_output(node.inputs[0]);
      operands.diff_scale = problem.find_output(node.outputs[0]);
      operands.diff_shift = problem.find_output(node.outputs[1]);
    } else {
      operands.norm = std::get<BatchNormAttributes>(node.attributes);
      operands.src = problem.input_index(node.inputs[1]);
      operands.mean = problem.input_index(node.inputs[2]);
      operands.variance = problem.input_index(node.inputs[3]);
      operands.scale = problem.input_index(node.inputs[4]);
    }
  }
  operands.diff_src = problem.output_index(problem.node(problem.nodes.size() - 1).outputs[0]);
  return operands;
}

conv::Geometry geometry_of(const Problem& problem) {
  const Node& root = problem.node();
  return conv::geometry_of(std::get<Conv2dAttributes>(root.attributes),
                           problem.graph->value(root.outputs[0]).spec.shape,
                           problem.graph->value(root.inputs[0]).spec.shape);
}

conv::Epilogue bounds_of(const Operands& operands) {
  const ActivationCode code = code_of(operands.activation ? &*operands.activation : nullptr);
  return conv::epilogue_of(code.kind, code.slope);
}

class DataGradient final : public Kernel {
 public:
  explicit DataGradient(const Problem& problem)
      : operands_(operands_of(problem)),
        dtype_(problem.input(operands_.src).dtype),
        plan_(
            hopper::make_plan(hopper::Role::gated, geometry_of(problem), dtype_, device_limits())),
        plain_(conv::plan_backward_data(geometry_of(problem), dtype_, false, device_limits())),
        activation_(code_of(operands_.activation ? &*operands_.activation : nullptr)) {
    const float high = bounds_of(operands_).high;
    if (std::isfinite(high)) closing_ = high;
    const Shape& shape = problem.input(operands_.src).shape;
    const std::int64_t channels = shape[1];
    const SumScratch scratch =
        gradient_sums_scratch(dtype_, shape.elements() / channels, channels, true);
    counters_ = take_counters(scratch.counters);
    sums_at_ = (3 * sizeof(float) * static_cast<std::size_t>(channels) + 255) / 256 * 256;
    const std::size_t sums = 2 * sizeof(float) * static_cast<std::size_t>(channels) *
                             static_cast<std::size_t>(hopper::channel_parts(plan_));
    workspace_bytes = sums_at_ + std::max({sums, scratch.bytes, plain_.workspace_bytes});
    implementation = plan_.text() + ", with sums";
    traits = {.slices = true};
  }

  void run(const KernelArgs& args) const override {
    const Rows src = rows_of(args.inputs[operands_.src]);
    const Rows diff_src = rows_of(args.outputs[operands_.diff_src]);
    // What no other step reads waits where its result will be.
    Rows g = rows_at(args.outputs, operands_.stored);
    if (g.data == nullptr) g = diff_src;
    sum(args, src, g);

    NormBackward task;
    task.dtype = dtype_;
    task.diff = g;
    task.src = src;
    task.diff_src = diff_src;
    task.plus = rows_at(args.inputs, operands_.plus);
    task.pack = word_pack_for(dtype_, {g, src, task.plus, diff_src});
    task.coefficients = coefficients(args);
    launch_norm_backward(task, stream_of(args));
  }

 private:
  // Makes g, its sums, and the coefficients for what follows.
  void sum(const KernelArgs& args, const Rows& src, const Rows& g) const {
    const Rows diff_dst = rows_of(args.inputs[operands_.diff_dst]);
    const void* weights = args.inputs[operands_.weights].data;
    std::byte* workspace = args.workspace + sums_at_;
    GradientSums task;
    task.dtype = dtype_;
    task.src = src;
    task.other = rows_at(args.inputs, operands_.other);
    task.kept = rows_at(args.inputs, operands_.kept);
    task.mean = args.inputs[operands_.mean].as<float>();
    task.variance = args.inputs[operands_.variance].as<float>();
    task.scale = args.inputs[operands_.scale].as<float>();
    task.epsilon = operands_.norm.epsilon;
    task.sums = floats_at(args.outputs, operands_.diff_shift);
    task.products = floats_at(args.outputs, operands_.diff_scale);
    task.coefficients = coefficients(args);
    const auto fits = [&](const Rows& rows) {
      return rows.data == nullptr || hopper::fits(rows, dtype_);
    };
    if (fits(diff_dst) && fits(g) && fits(src) && fits(task.kept) && fits(task.other)) {
      auto* sums = reinterpret_cast<float*>(workspace);
      hopper::run_gated(plan_, diff_dst, weights, g,
                        {src, task.kept, task.other, closing_, task.mean, sums}, stream_of(args));
      launch_merge_gradient_sums(task, sums, hopper::channel_parts(plan_), stream_of(args));
      return;
    }
    conv::run_gather(plain_, diff_dst, weights, g, {}, workspace, stream_of(args));
    task.diff = task.stored = g;
    task.pack = word_pack_for(dtype_, {g, task.other, task.kept, src});
    task.activation = activation_.kind;
    task.slope = activation_.slope;
    task.workspace = workspace;
    task.counters = counters_;
    launch_gradient_sums(task, stream_of(args));
  }

  [[nodiscard]] float* coefficients(const KernelArgs& args) const {
    return reinterpret_cast<float*>(args.workspace);
  }

  Operands operands_;
  DType dtype_;
  hopper::Plan plan_;
  conv::GatherPlan plain_;  // for tensors that do not fit
  ActivationCode activation_;
  float closing_ = std::numeric_limits<float>::quiet_NaN();  // no result is as large as that
  std::size_t sums_at_ = 0;
  unsigned* counters_ = nullptr;
};

std::vector<NodeId> match(const Graph& graph, NodeId first) {
  const Node& root = graph.node(first);
  if (root.kind != OpKind::conv2d_backward_data) return {};
  const ValueId gradient = root.outputs[0];
  std::vector<NodeId> nodes;
  if (const NodeId user = sole_user(graph, gradient); user != kNoNode) {
    const std::vector<ValueId>& inputs = graph.node(user).inputs;
    const bool twice = inputs.size() > 1 && inputs[0] == inputs[1];
    const bool first_input = inputs[0] == gradient;
    if (graph.node(user).kind == OpKind::add && !twice) {
      nodes = patterns::add_act_bn_backward(graph, user);
      if (nodes.empty()) nodes = patterns::add_bn_backward(graph, user);
    } else if (first_input && !twice) {
      nodes = patterns::act_bn_backward(graph, user);
    }
  } else if (graph.value(gradient).users.size() == 2) {
    for (const NodeId reduce : graph.value(gradient).users) {
      if (nodes.empty()) nodes = patterns::bn_backward(graph, reduce);
    }
  }
  if (!nodes.empty()) nodes.insert(nodes.begin(), first);
  return nodes;
}

std::vector<NodeId> match_add(const Graph& graph, NodeId first) {
  std::vector<NodeId> nodes = match(graph, first);
  if (nodes.empty()) return {};
  const NodeId user = sole_user(graph, graph.node(nodes.back()).outputs[0]);
  if (user == kNoNode || graph.node(user).kind != OpKind::add) return {};
  if (graph.node(user).inputs[0] == graph.node(user).inputs[1]) return {};
  nodes.push_back(user);
  return nodes;
}

std::string check(const Problem& problem) {
  std::string reason = check_channels(problem);
  if (!reason.empty()) return reason;
  const Operands operands = operands_of(problem);
  if (operands.norm.frozen) return "frozen statistics";
  if (!bounds_of(operands).bounded) return "not ReLU or ReLU6";
  return hopper::refuse(hopper::Role::gated, geometry_of(problem),
                        problem.input(operands.src).dtype, device_limits());
}

std::unique_ptr<Kernel> make(const Problem& problem, std::span<const Layout>) {
  auto kernel = std::make_unique<DataGradient>(problem);
  set_layouts(*kernel, problem, Layout::nhwc());
  return kernel;
}

constexpr KernelRow kRows[] = {
    {"conv2d_backward_data_bn_backward_add", match_add, check, make},
    {"conv2d_backward_data_bn_backward", match, check, make},
};

}  // namespace

std::span<const KernelRow> hopper_gradient_rows() { return kRows; }

}  // namespace ridgeline::cuda
