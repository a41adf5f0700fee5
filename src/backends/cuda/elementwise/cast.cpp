#include "backends/cuda/elementwise/cast.h"

#include "backends/cuda/conv/image_rows.h"
#include "backends/cuda/elementwise/cast_kernels.h"

namespace ridgeline::cuda {
namespace {

DType target_of(const Node& node) { return std::get<CastAttributes>(node.attributes).to; }

// A parameter that becomes narrower: what the kernel for weights does.
bool narrows_parameter(const Graph& graph, const Node& node) {
  const Value& src = graph.value(node.inputs[0]);
  const DType to = target_of(node);
  return src.role == Role::parameter && src.spec.dtype == DType::f32 &&
         (to == DType::bf16 || to == DType::f16);
}

std::int64_t taps_of(const Shape& shape) { return shape.rank() == 4 ? shape[2] * shape[3] : 1; }

// Whether plain and nhwc are different orders of the elements.
bool has_orders(const Shape& shape) { return taps_of(shape) > 1 && shape[1] > 1; }

WeightCast weight_cast_of(const Tensor& src, const Tensor& dst) {
  const Shape& shape = src.shape();
  WeightCast cast;
  cast.src = src.as<float>();
  cast.dst = dst.data;
  cast.filters = shape.elements();
  if (has_orders(shape)) {
    cast.filters = shape[0];
    cast.channels = static_cast<std::int32_t>(shape[1]);
    cast.taps = static_cast<std::int32_t>(taps_of(shape));
  }
  return cast;
}

class ParameterCasts final : public Kernel {
 public:
  // The positions of each cast's source among the inputs and of its result among the outputs.
  struct Places {
    std::size_t src, dst;
  };

  ParameterCasts(std::vector<Places> places, DType to) : places_(std::move(places)), to_(to) {}

  void run(const KernelArgs& args) const override {
    WeightCast casts[kMostWeightCasts];
    int count = 0;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const Tensor& dst = args.outputs[places_[i].dst];
      if (dst.data != nullptr) casts[count++] = weight_cast_of(args.inputs[places_[i].src], dst);
      if (count == kMostWeightCasts || (i + 1 == places_.size() && count > 0)) {
        launch_weight_casts(casts, count, to_, stream_of(args));
        count = 0;
      }
    }
  }

 private:
  std::vector<Places> places_;
  DType to_;
};

// A value without gaps as one row, whatever its layout.
Rows one_row(const Tensor& tensor) {
  const std::int64_t elements = tensor.shape().elements();
  return {tensor.data, 1, elements, elements};
}

class SingleCast final : public Kernel {
 public:
  explicit SingleCast(bool plain) : plain_(plain) {}

  void run(const KernelArgs& args) const override {
    const Tensor &src = args.inputs[0], &dst = args.outputs[0];
    Cast task;
    task.from = src.spec.dtype;
    task.to = dst.spec.dtype;
    task.src = plain_ ? one_row(src) : rows_of(src);
    task.dst = plain_ ? one_row(dst) : rows_of(dst);
    launch_cast(task, stream_of(args));
  }

 private:
  bool plain_;  // a parameter, which has no gaps
};

}  // namespace

std::vector<NodeId> match_parameter_casts(const Graph& graph, NodeId first) {
  std::vector<NodeId> nodes;
  for (NodeId id = first; id < static_cast<NodeId>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    if (node.kind != OpKind::cast || !narrows_parameter(graph, node) ||
        target_of(node) != target_of(graph.node(first)) ||
        taps_of(graph.value(node.inputs[0]).spec.shape) > kMostTaps) {
      break;
    }
    nodes.push_back(id);
  }
  return nodes;
}

std::string check_parameter_casts(const Problem& problem) { return refuse_doubles(problem); }

std::unique_ptr<Kernel> make_parameter_casts(const Problem& problem, std::span<const Layout>) {
  std::vector<ParameterCasts::Places> places;
  for (std::size_t i = 0; i < problem.nodes.size(); ++i) {
    const Index dst = problem.find_output(problem.node(i).outputs[0]);
    if (dst) places.push_back({problem.input_index(problem.node(i).inputs[0]), *dst});
  }
  auto kernel = std::make_unique<ParameterCasts>(std::move(places), target_of(problem.node()));
  set_layouts(*kernel, problem, Layout::nhwc());
  for (Layout& layout : kernel->input_layouts) layout = Layout::plain();
  return kernel;
}

std::string check_cast(const Problem& problem) {
  if (problem.input(0).shape.rank() == 3)
    return "the kernels work on rows and images, not on rank 3";
  return refuse_doubles(problem);
}

std::unique_ptr<Kernel> make_cast(const Problem& problem, std::span<const Layout>) {
  const bool parameter = problem.graph->value(problem.inputs[0]).role == Role::parameter;
  auto kernel = std::make_unique<SingleCast>(parameter);
  set_layouts(*kernel, problem, parameter ? Layout::plain() : Layout::nhwc());
  kernel->traits = {.slices = !parameter};
  return kernel;
}

}  // namespace ridgeline::cuda
