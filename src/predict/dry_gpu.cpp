#include "predict/dry_gpu.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "plan/patterns.h"
#include "predict/dry_exchange.h"

namespace ridgeline::predict {
namespace {

class DryKernel final : public Kernel {
 public:
  void run(const KernelArgs&) const override { fail("a dry plan cannot run"); }
};

std::string accept(const Problem&) { return {}; }

// Tensor cores take dense products of narrow numbers, and of f32 where TF32 is allowed.
std::string_view product_unit(const Problem& problem) {
  const DType dtype = problem.input(0).dtype;
  if (dtype == DType::bf16) return "tensor bf16";
  if (dtype == DType::f16) return "tensor fp16";
  return problem.graph->allows_tf32() ? "tensor tf32" : "fp32";
}

bool is_depthwise_problem(const Problem& problem) {
  const auto* attributes = std::get_if<Conv2dAttributes>(&problem.node().attributes);
  if (attributes == nullptr || attributes->groups == 1) return false;
  const bool to_src = problem.node().kind == OpKind::conv2d_backward_data;
  const TensorSpec& src = to_src ? problem.output(0) : problem.input(0);
  return src.shape[1] == attributes->groups;
}

std::unique_ptr<DryKernel> dry_kernel(const Problem& problem, const Layout& image) {
  auto kernel = std::make_unique<DryKernel>();
  set_layouts(*kernel, problem, image);
  kernel->traits.slices = true;
  return kernel;
}

std::unique_ptr<Kernel> make_image(const Problem& problem, std::span<const Layout>) {
  return dry_kernel(problem, Layout::nhwc());
}

std::unique_ptr<Kernel> make_elements(const Problem& problem, std::span<const Layout>) {
  auto kernel = dry_kernel(problem, Layout::nhwc());
  kernel->traits.in_place = true;
  return kernel;
}

std::unique_ptr<Kernel> make_plain(const Problem& problem, std::span<const Layout>) {
  return dry_kernel(problem, Layout::plain());
}

std::unique_ptr<Kernel> make_product(const Problem& problem, std::span<const Layout>) {
  auto kernel = dry_kernel(problem, Layout::nhwc());
  kernel->unit = is_depthwise_problem(problem) ? "fp32" : product_unit(problem);
  return kernel;
}

std::unique_ptr<Kernel> make_input(const Problem& problem, std::span<const Layout>) {
  auto kernel = dry_kernel(problem, Layout::nhwc());
  kernel->input_layouts.assign(problem.inputs.size(), Layout::plain());
  return kernel;
}

// Weights lie plain before they are cast and nhwc behind.
std::unique_ptr<Kernel> make_dry_cast(const Problem& problem, std::span<const Layout>) {
  auto kernel = dry_kernel(problem, Layout::nhwc());
  for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
    if (is_persistent(problem.graph->value(problem.inputs[i]).role)) {
      kernel->input_layouts[i] = Layout::plain();
    }
  }
  return kernel;
}

// Optimizers read gradients as they lie.
std::unique_ptr<Kernel> make_update(const Problem& problem, std::span<const Layout> layouts) {
  auto kernel = dry_kernel(problem, Layout::plain());
  for (std::size_t n = 0; n < problem.nodes.size(); ++n) {
    const std::size_t gradient = problem.input_index(problem.node(n).inputs[1]);
    kernel->input_layouts[gradient] = layouts[gradient];
  }
  kernel->traits.in_place = true;
  return kernel;
}

std::unique_ptr<Kernel> make_dry_guard(const Problem& problem, std::span<const Layout> layouts) {
  auto kernel = dry_kernel(problem, Layout::plain());
  const Node& node = problem.node();
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const std::size_t input = problem.input_index(node.inputs[i]);
    kernel->input_layouts[input] = layouts[input];
    kernel->output_layouts[problem.output_index(node.outputs[i])] = layouts[input];
  }
  kernel->traits.in_place = true;
  return kernel;
}

std::unique_ptr<Kernel> make_dry_reorder(const TensorSpec&, const Layout& from, const Layout& to) {
  auto kernel = std::make_unique<DryKernel>();
  kernel->input_layouts = {from};
  kernel->output_layouts = {to};
  kernel->traits.slices = true;
  return kernel;
}

// A bn_statistics and the update of the running ones.
std::vector<NodeId> match_statistics(const Graph& graph, NodeId first) {
  const Node& statistics = graph.node(first);
  if (statistics.kind != OpKind::bn_statistics) return {};
  for (const NodeId user : graph.value(statistics.outputs[0]).users) {
    if (graph.node(user).kind == OpKind::bn_update_running) return {first, user};
  }
  return {};
}

// Casts of weights that follow one another.
std::vector<NodeId> match_casts(const Graph& graph, NodeId first) {
  std::vector<NodeId> nodes;
  for (NodeId id = first; id < static_cast<NodeId>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    if (node.kind != OpKind::cast || graph.value(node.inputs[0]).role != Role::parameter) break;
    nodes.push_back(id);
  }
  return nodes;
}

std::vector<NodeId> match_any(const Graph&, NodeId first) { return {first}; }

// The networks that the cuda backend computes as a whole, gradients and all: a perceptron with one
// hidden layer, and two convolutions with a hidden layer behind them.
struct SmallNetwork {
  std::array<std::int64_t, 2> filters = {}, dense = {};  // outputs, in their order
  std::size_t convolutions = 0, layers = 0;
  std::int64_t channels = 0, inputs = 0, kernel = 0;
  bool plain = true;  // no other ops than such networks have
};

void add_conv(SmallNetwork& found, const Graph& graph, const Node& node) {
  const Shape& weights = graph.value(node.inputs[1]).spec.shape;
  if (found.convolutions < 2) found.filters[found.convolutions] = weights[0];
  if (found.convolutions++ == 0) found.channels = weights[1];
  if (weights[2] != weights[3] || (found.kernel != 0 && found.kernel != weights[2])) {
    found.plain = false;
  }
  found.kernel = weights[2];
}

void add_dense(SmallNetwork& found, const Graph& graph, const Node& node) {
  const Shape& weights = graph.value(node.inputs[1]).spec.shape;
  if (found.layers < 2) found.dense[found.layers] = weights[0];
  if (found.layers++ == 0) found.inputs = weights[1];
}

void add_node(SmallNetwork& found, const Graph& graph, const Node& node) {
  switch (node.kind) {
    case OpKind::conv2d:
      return add_conv(found, graph, node);
    case OpKind::linear:
      return add_dense(found, graph, node);
    case OpKind::normalize:
    case OpKind::reshape:
    case OpKind::bias:
    case OpKind::activation:
    case OpKind::pool:
    case OpKind::softmax_cross_entropy:
    case OpKind::metrics:
    case OpKind::softmax_cross_entropy_backward:
    case OpKind::linear_backward_data:
    case OpKind::linear_backward_weights:
    case OpKind::conv2d_backward_data:
    case OpKind::conv2d_backward_weights:
    case OpKind::bias_backward:
    case OpKind::activation_backward:
    case OpKind::pool_backward:
      return;
    default:
      found.plain = false;
  }
}

// The limits are those of src/backends/cuda/whole_step.
bool is_small(const SmallNetwork& found) {
  if (!found.plain || found.layers != 2 || found.dense[1] > 32) return false;
  if (found.convolutions == 0) return found.inputs <= 4096 && found.dense[0] <= 64;
  return found.convolutions == 2 && found.channels == 1 &&
         (found.kernel == 3 || found.kernel == 5) && found.filters[0] <= 32 &&
         found.filters[1] <= 32 && found.inputs <= 2048 && found.dense[0] <= 256;
}

// Everything in front of the updates of a training step.
std::vector<NodeId> match_small_network(const Graph& graph, NodeId first) {
  if (first != 0) return {};
  SmallNetwork found;
  std::vector<NodeId> nodes;
  bool trains = false;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    if (node.phase == Phase::optimizer) break;
    trains = trains || node.phase == Phase::backward_weights;
    add_node(found, graph, node);
    nodes.push_back(id);
  }
  if (!trains || !is_small(found)) return {};
  return nodes;
}

std::string check_small_network(const Problem& problem) {
  for (const NodeId node : problem.nodes) {
    for (const ValueId output : problem.graph->node(node).outputs) {
      const DType dtype = problem.graph->value(output).spec.dtype;
      if (dtype == DType::bf16 || dtype == DType::f16) return "computes in f32 alone";
    }
  }
  return {};
}

// Larger patterns first. The last row takes what no other one covers, each op alone.
constexpr KernelRow kDryRows[] = {
    {"small_network", match_small_network, check_small_network, make_plain},
    {"conv2d_epilogue", patterns::conv2d_epilogue, accept, make_product},
    {"conv2d", match_one<OpKind::conv2d>, accept, make_product},
    {"conv2d_backward_data", match_one<OpKind::conv2d_backward_data>, accept, make_product},
    {"conv2d_backward_weights", match_one<OpKind::conv2d_backward_weights>, accept, make_product},
    {"linear_epilogue", patterns::linear_epilogue, accept, make_product},
    {"linear", match_one<OpKind::linear>, accept, make_product},
    {"linear_backward_data", match_one<OpKind::linear_backward_data>, accept, make_product},
    {"linear_backward_weights", match_one<OpKind::linear_backward_weights>, accept, make_product},
    {"add_act_bn_backward", patterns::add_act_bn_backward, accept, make_image},
    {"act_bn_backward", patterns::act_bn_backward, accept, make_image},
    {"add_bn_backward", patterns::add_bn_backward, accept, make_image},
    {"bn_backward", patterns::bn_backward, accept, make_image},
    {"bn_statistics_update", match_statistics, accept, make_image},
    {"bn_apply_add_act", patterns::bn_apply_add_act, accept, make_image},
    {"bn_apply_add", patterns::bn_apply_add, accept, make_image},
    {"bn_apply_act", patterns::bn_apply_act, accept, make_image},
    {"bn_update_running_all", patterns::run_of_any<OpKind::bn_update_running>, accept, make_image},
    {"pool_act_backward_bias", patterns::pool_act_backward_bias, accept, make_image},
    {"pool_act_backward", patterns::pool_act_backward, accept, make_image},
    {"add_act_backward_bias", patterns::add_act_backward_bias, accept, make_elements},
    {"act_backward_bias", patterns::act_backward_bias, accept, make_elements},
    {"add_act_backward", patterns::add_act_backward, accept, make_elements},
    {"cast_all", match_casts, accept, make_dry_cast},
    {"add_act", patterns::add_act, accept, make_elements},
    {"activation", match_one<OpKind::activation>, accept, make_elements},
    {"activation_backward", match_one<OpKind::activation_backward>, accept, make_elements},
    {"add", match_one<OpKind::add>, accept, make_elements},
    {"bias", match_one<OpKind::bias>, accept, make_elements},
    {"dropout", match_one<OpKind::dropout>, accept, make_elements},
    {"normalize", match_one<OpKind::normalize>, accept, make_input},
    {"softmax_cross_entropy", match_one<OpKind::softmax_cross_entropy>, accept, make_plain},
    {"softmax_cross_entropy_backward", match_one<OpKind::softmax_cross_entropy_backward>, accept,
     make_plain},
    {"metrics", match_one<OpKind::metrics>, accept, make_plain},
    {"sgd_all", patterns::run_of_same<OpKind::sgd>, accept, make_update},
    {"adam_all", patterns::run_of_same<OpKind::adam>, accept, make_update},
    {"overflow_guard", match_one<OpKind::overflow_guard>, accept, make_dry_guard},
    {"all_reduce", match_one<OpKind::all_reduce>, accept, make_dry_exchange},
    {"op", match_any, accept, make_image},
};

const Backend kDryGpu = {.name = "dry-gpu",
                         .device = "cuda",
                         .unavailable = [] { return std::string(); },
                         .version = [] { return std::string("1"); },
                         .rows = [] { return std::span<const KernelRow>(kDryRows); },
                         .make_reorder = make_dry_reorder,
                         .gradients_in_any_layout = true};

}  // namespace

Plan dry_gpu_plan(const StepSpec& spec, bool inference) {
  PlanOptions options;
  options.providers = {&kDryGpu};
  options.constant_weights = inference;
  options.measure = false;
  return make_plan(inference ? inference_graph(spec).graph : training_graph(spec).graph, options);
}

}  // namespace ridgeline::predict
