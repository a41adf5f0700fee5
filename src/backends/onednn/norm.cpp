// Batch normalisation. The library knows the whole layer only, forward and backward; so the rows
// are statistics + apply (+ ReLU), apply alone with given statistics, and reduction + apply
// backward.

#include "backends/onednn/common.h"
#include "backends/onednn/patterns.h"
#include "backends/onednn/rows.h"

namespace ridgeline::onednn {
namespace {

using dnnl::batch_normalization_backward;
using dnnl::batch_normalization_forward;
using Flags = dnnl::normalization_flags;
const Flags kScaleAndShift = Flags::use_scale | Flags::use_shift;

// The nodes of a forward problem; those that the pattern lacks are null.
struct Layer {
  const Node* statistics = nullptr;
  const Node* apply = nullptr;
  const Node* relu = nullptr;
};

Layer layer_of(const Problem& problem) {
  Layer layer;
  for (std::size_t i = 0; i < problem.nodes.size(); ++i) {
    const Node& node = problem.node(i);
    if (node.kind == OpKind::bn_statistics) layer.statistics = &node;
    if (node.kind == OpKind::bn_apply) layer.apply = &node;
    if (node.kind == OpKind::activation) layer.relu = &node;
  }
  return layer;
}

float epsilon_of(const Node& node) {
  return static_cast<float>(std::get<BatchNormAttributes>(node.attributes).epsilon);
}

bool append_relu(const Graph& graph, std::vector<NodeId>& nodes) {
  if (!append_user(graph, OpKind::activation, nodes)) return false;
  const auto& a = std::get<ActivationAttributes>(graph.node(nodes.back()).attributes);
  return a.kind == ActivationKind::relu;
}

template <bool with_relu>
std::vector<NodeId> match_apply(const Graph& graph, NodeId first) {
  if (graph.node(first).kind != OpKind::bn_apply) return {};
  std::vector<NodeId> nodes = {first};
  if (with_relu && !append_relu(graph, nodes)) return {};
  return nodes;
}

template <bool with_relu>
std::vector<NodeId> match_layer(const Graph& graph, NodeId first) {
  const Node& statistics = graph.node(first);
  if (statistics.kind != OpKind::bn_statistics) return {};
  for (const NodeId user : graph.value(statistics.outputs[0]).users) {
    const Node& apply = graph.node(user);
    if (apply.kind != OpKind::bn_apply || apply.inputs[0] != statistics.inputs[0] ||
        apply.inputs[2] != statistics.outputs[1]) {
      continue;
    }
    std::vector<NodeId> nodes = {first, user};
    if (with_relu && !append_relu(graph, nodes)) return {};
    return nodes;
  }
  return {};
}

std::vector<NodeId> match_backward(const Graph& graph, NodeId first) {
  const Node& reduce = graph.node(first);
  if (reduce.kind != OpKind::bn_backward_reduce) return {};
  for (const NodeId user : graph.value(reduce.outputs[0]).users) {
    const Node& apply = graph.node(user);
    if (apply.kind == OpKind::bn_backward_apply && apply.inputs[0] == reduce.inputs[0] &&
        apply.inputs[1] == reduce.inputs[1] && apply.inputs[5] == reduce.outputs[0]) {
      return {first, user};
    }
  }
  return {};
}

batch_normalization_forward::primitive_desc forward_desc(const Problem& problem) {
  const Layer layer = layer_of(problem);
  const TensorSpec& src = problem.graph->value(layer.apply->inputs[0]).spec;
  Flags flags = kScaleAndShift;
  if (layer.statistics == nullptr) flags |= Flags::use_global_stats;
  if (layer.relu != nullptr) flags |= Flags::fuse_norm_relu;
  // Only the training kind gives the statistics away.
  const auto purpose = layer.statistics == nullptr ? dnnl::prop_kind::forward_inference
                                                   : dnnl::prop_kind::forward_training;
  return in_image_format(src.shape, [&](Tag tag) {
    return forward_maker<batch_normalization_forward>(user_scratchpad(), purpose,
                                                      src_and_dst(describe(src, tag)),
                                                      epsilon_of(*layer.apply), flags)();
  });
}

batch_normalization_backward::primitive_desc backward_desc(const Problem& problem) {
  const Node& apply = problem.node(1);
  const TensorSpec& src = problem.graph->value(apply.inputs[1]).spec;
  Flags flags = kScaleAndShift;
  if (std::get<BatchNormAttributes>(apply.attributes).frozen) flags |= Flags::use_global_stats;
  const float epsilon = epsilon_of(apply);
  return in_image_format(src.shape, [&](Tag tag) {
    const memory::desc data = describe(src, tag);
    const auto hint = forward_maker<batch_normalization_forward>(
        {}, dnnl::prop_kind::forward_training, src_and_dst(data), epsilon, flags)();
    return backward_maker<batch_normalization_backward>(user_scratchpad(), hint,
                                                        dnnl::prop_kind::backward,
                                                        src_and_dst(data), data, epsilon, flags)();
  });
}

std::string check_forward(const Problem& problem) {
  return refuse(problem, [&] { return forward_desc(problem); });
}

std::string check_backward(const Problem& problem) {
  return refuse(problem, [&] { return backward_desc(problem); });
}

memory::desc per_channel(const Problem& problem, ValueId value) {
  return describe(problem.graph->value(value).spec, Tag::a);
}

std::unique_ptr<Kernel> make_forward(const Problem& problem, std::span<const Layout> layouts) {
  return checked("batch normalisation", [&] {
    const Layer layer = layer_of(problem);
    const std::vector<ValueId>& inputs = layer.apply->inputs;
    const auto desc = forward_desc(problem);
    auto kernel = std::make_unique<PrimitiveKernel>(problem, desc);
    const auto bind_per_channel = [&](int argument, ValueId value) {
      kernel->bind_input(argument, problem.input_index(value), per_channel(problem, value));
    };
    const std::size_t src = problem.input_index(inputs[0]);
    kernel->bind_input(DNNL_ARG_SRC, src, desc.src_desc(), layouts[src]);
    if (layer.statistics == nullptr) {
      bind_per_channel(DNNL_ARG_MEAN, inputs[1]);
      bind_per_channel(DNNL_ARG_VARIANCE, inputs[2]);
      kernel->traits.in_place = true;
    } else {
      kernel->bind_result(DNNL_ARG_MEAN, problem, inputs[1], per_channel(problem, inputs[1]));
      kernel->bind_result(DNNL_ARG_VARIANCE, problem, inputs[2], per_channel(problem, inputs[2]));
    }
    bind_per_channel(DNNL_ARG_SCALE, inputs[3]);
    bind_per_channel(DNNL_ARG_SHIFT, inputs[4]);
    const Node* last = layer.relu != nullptr ? layer.relu : layer.apply;
    kernel->bind_output(DNNL_ARG_DST, problem.output_index(last->outputs[0]), desc.dst_desc(),
                        Layout::nhwc());
    // The mask that the library's own backward pass would read; ours reads dst.
    if (layer.statistics != nullptr && layer.relu != nullptr) {
      kernel->bind_scratch(DNNL_ARG_WORKSPACE, desc.workspace_desc());
    }
    return kernel;
  });
}

std::unique_ptr<Kernel> make_backward(const Problem& problem, std::span<const Layout> layouts) {
  return checked("batch normalisation backward", [&] {
    const Node& reduce = problem.node(0);
    const Node& apply = problem.node(1);
    const auto desc = backward_desc(problem);
    auto kernel = std::make_unique<PrimitiveKernel>(problem, desc);
    const auto bind_per_channel = [&](int argument, ValueId value) {
      kernel->bind_input(argument, problem.input_index(value), per_channel(problem, value));
    };
    const std::size_t diff_dst = problem.input_index(apply.inputs[0]);
    const std::size_t src = problem.input_index(apply.inputs[1]);
    kernel->bind_input(DNNL_ARG_DIFF_DST, diff_dst, desc.diff_dst_desc(), layouts[diff_dst]);
    kernel->bind_input(DNNL_ARG_SRC, src, desc.src_desc(), layouts[src]);
    bind_per_channel(DNNL_ARG_MEAN, apply.inputs[2]);
    bind_per_channel(DNNL_ARG_VARIANCE, apply.inputs[3]);
    bind_per_channel(DNNL_ARG_SCALE, apply.inputs[4]);
    // 2.x asks for the shift as well, although no gradient depends on it.
    if (kOpDescriptors) bind_per_channel(DNNL_ARG_SHIFT, apply.inputs[4]);
    kernel->bind_result(DNNL_ARG_DIFF_SCALE, problem, reduce.outputs[0],
                        per_channel(problem, reduce.outputs[0]));
    kernel->bind_result(DNNL_ARG_DIFF_SHIFT, problem, reduce.outputs[1],
                        per_channel(problem, reduce.outputs[1]));
    kernel->bind_output(DNNL_ARG_DIFF_SRC, problem.output_index(apply.outputs[0]),
                        desc.diff_src_desc(), Layout::nhwc());
    return kernel;
  });
}

}  // namespace

std::span<const KernelRow> norm_rows() {
  static constexpr KernelRow kRows[] = {
      {"bn_relu", match_layer<true>, check_forward, make_forward},
      {"bn", match_layer<false>, check_forward, make_forward},
      {"bn_apply_relu", match_apply<true>, check_forward, make_forward},
      {"bn_apply", match_apply<false>, check_forward, make_forward},
      {"bn_backward", match_backward, check_backward, make_backward},
  };
  return kRows;
}

}  // namespace ridgeline::onednn
