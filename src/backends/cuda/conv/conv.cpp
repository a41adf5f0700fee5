#include <fmt/core.h>

#include <algorithm>

#include "backends/cuda/common.h"
#include "backends/cuda/conv/conv_plan.h"
#include "backends/cuda/conv/stem.h"
#include "backends/cuda/hopper/hopper_plan.h"
#include "backends/cuda/norm/statistics_operands.h"
#include "backends/cuda/rows.h"
#include "backends/cuda/sums/counters.h"
#include "plan/patterns.h"

namespace ridgeline::cuda {
namespace {

bool is_linear(const Problem& problem) {
  const OpKind kind = problem.node().kind;
  return kind == OpKind::linear || kind == OpKind::linear_backward_data ||
         kind == OpKind::linear_backward_weights;
}

// A matrix product is a convolution of images of one pixel.
Conv2dAttributes attributes_of(const Problem& problem) {
  if (is_linear(problem)) return {};
  return std::get<Conv2dAttributes>(problem.node().attributes);
}

const TensorSpec& spec_of(const Problem& problem, ValueId value) {
  return problem.graph->value(value).spec;
}

// The operands and the result have one type; biases are f32.
std::string refuse_mixed_types(const Problem& problem) {
  std::string reason = refuse_doubles(problem);
  if (!reason.empty()) return reason;
  const Node& node = problem.node();
  const DType first = spec_of(problem, node.inputs[0]).dtype;
  const DType second = spec_of(problem, node.inputs[1]).dtype;
  if (first == second) return {};
  return fmt::format("operands of two types, {} and {}", name_of(first), name_of(second));
}

// Where a node's inputs stand among the kernel's.
std::size_t place_of(const Problem& problem, std::size_t input) {
  return problem.input_index(problem.node().inputs[input]);
}

// Forward or backward data: on Hopper's own instructions where they can, for tensors that fit, else
// as stem.h and conv_plan.h have it.
class Images {
 public:
  Images(hopper::Role role, const Problem& problem, const conv::Geometry& geometry, DType dtype)
      : plan_(
            role == hopper::Role::forward
                ? conv::plan_forward(geometry, dtype, problem.graph->allows_tf32(), device_limits())
                : conv::plan_backward_data(geometry, dtype, problem.graph->allows_tf32(),
                                           device_limits())) {
    if (hopper::refuse(role, geometry, dtype, device_limits()).empty()) {
      hopper_ = hopper::make_plan(role, geometry, dtype, device_limits());
    } else if (role == hopper::Role::forward) {
      const auto stem = conv::stem_for(geometry, dtype, device_limits());
      if (stem) stem_.emplace(*stem, dtype, device_limits());
    }
  }

  // Few pixels and a long depth leave most of the device idle, unless the depth is cut as well, as
  // only the older kernels do.
  void choose() {
    const bool cut = !plan_.direct && hopper_ && 2 * plan_.cycles < hopper_->cycles;
    if (plan_.small || cut) hopper_.reset();
  }

  [[nodiscard]] const std::optional<hopper::Plan>& hopper() const { return hopper_; }

  void describe(Kernel& kernel) const {
    kernel.workspace_bytes = stem_ ? stem_->workspace_bytes() : plan_.workspace_bytes;
    kernel.implementation = hopper_ ? hopper_->text()
                            : stem_ ? stem_->stem.text(stem_->plan.text())
                                    : plan_.text();
    kernel.flop_factor = hopper_ ? 1 : stem_ ? stem_->stem.flop_factor() : plan_.joined;
  }

  [[nodiscard]] bool fit(const Rows& src, const void* weights, const Rows& dst,
                         const conv::Epilogue& epilogue) const {
    return hopper_ && epilogue.bounded && hopper::fits(src, plan_.dtype) &&
           hopper::fits(dst, plan_.dtype) && reinterpret_cast<std::uintptr_t>(weights) % 16 == 0;
  }

  // `moments`: null, or that of a forward whose tensors fit.
  void run(const Rows& src, const void* weights, const Rows& dst, const conv::Epilogue& epilogue,
           float* moments, const KernelArgs& args) const {
    if (fit(src, weights, dst, epilogue)) {
      if (hopper_->role == hopper::Role::forward) {
        hopper::run_forward(*hopper_, src, weights, dst, epilogue, moments, stream_of(args));
      } else {
        hopper::run_data(*hopper_, src, weights, dst, stream_of(args));
      }
    } else if (stem_) {
      stem_->run(src, weights, dst, epilogue, args.workspace, stream_of(args));
    } else {
      conv::run_gather(plan_, src, weights, dst, epilogue, args.workspace, stream_of(args));
    }
  }

 private:
  conv::GatherPlan plan_;
  std::optional<hopper::Plan> hopper_;
  std::optional<conv::StemForward> stem_;
};

conv::Geometry forward_geometry(const Problem& problem) {
  const Node& node = problem.node();
  return conv::geometry_of(attributes_of(problem), spec_of(problem, node.inputs[0]).shape,
                           spec_of(problem, node.outputs[0]).shape);
}

class Forward final : public Kernel {
 public:
  explicit Forward(const Problem& problem)
      : src_(place_of(problem, 0)),
        weights_(place_of(problem, 1)),
        images_(hopper::Role::forward, problem, forward_geometry(problem),
                problem.input(src_).dtype) {
    for (const NodeId id : problem.nodes) {
      const Node& node = problem.graph->node(id);
      if (node.kind == OpKind::bias) bias_ = problem.input_index(node.inputs[1]);
      if (node.kind == OpKind::activation) {
        const auto& attributes = std::get<ActivationAttributes>(node.attributes);
        epilogue_ = conv::epilogue_of(static_cast<int>(attributes.kind),
                                      static_cast<float>(attributes.slope));
      }
    }
    images_.choose();
    images_.describe(*this);
  }

  void run(const KernelArgs& args) const override {
    if (args.outputs[0].data == nullptr) return;
    conv::Epilogue epilogue = epilogue_;
    if (bias_ != kNoBias) epilogue.bias = args.inputs[bias_].as<float>();
    images_.run(rows_of(args.inputs[src_]), args.inputs[weights_].data, rows_of(args.outputs[0]),
                epilogue, nullptr, args);
  }

 private:
  static constexpr std::size_t kNoBias = ~std::size_t{0};

  std::size_t src_, weights_, bias_ = kNoBias;
  conv::Epilogue epilogue_;
  Images images_;
};

// A convolution and the statistics of its result, taken while it is written.
class ForwardStatistics final : public Kernel {
 public:
  explicit ForwardStatistics(const Problem& problem)
      : src_(place_of(problem, 0)),
        weights_(place_of(problem, 1)),
        dst_(problem.output_index(problem.node().outputs[0])),
        images_(hopper::Role::forward, problem, forward_geometry(problem),
                problem.input(src_).dtype),
        statistics_(problem, 1) {
    images_.describe(*this);
    const Shape& shape = problem.output(dst_).shape;
    parts_ = hopper::channel_parts(*images_.hopper());
    const SumScratch scratch =
        statistics_scratch(problem.output(dst_).dtype, shape.elements() / shape[1], shape[1]);
    counters_ = take_counters(scratch.counters);
    workspace_bytes = std::max({workspace_bytes, moments_bytes(parts_, shape[1]), scratch.bytes});
    implementation += ", with statistics";
  }

  void run(const KernelArgs& args) const override {
    const Rows src = rows_of(args.inputs[src_]), dst = rows_of(args.outputs[dst_]);
    const void* weights = args.inputs[weights_].data;
    NormStatistics task = statistics_.task(args);
    task.dtype = args.outputs[dst_].spec.dtype;
    if (images_.fit(src, weights, dst, {})) {
      auto* moments = reinterpret_cast<float*>(args.workspace);
      images_.run(src, weights, dst, {}, moments, args);
      launch_merge_moments(task, {moments, parts_, static_cast<int>(dst.width)}, stream_of(args));
      return;
    }
    images_.run(src, weights, dst, {}, nullptr, args);
    task.src = dst;
    task.workspace = args.workspace;
    task.counters = counters_;
    launch_statistics(task, stream_of(args));
  }

 private:
  std::size_t src_, weights_, dst_;
  Images images_;
  StatisticsOperands statistics_;
  int parts_ = 1;
  unsigned* counters_ = nullptr;
};

// conv2d and the bn_statistics of its result, which others read as well.
std::vector<NodeId> match_statistics(const Graph& graph, NodeId first) {
  const Node& node = graph.node(first);
  if (node.kind != OpKind::conv2d) return {};
  const std::vector<NodeId>& users = graph.value(node.outputs[0]).users;
  if (users.size() < 2) return {};
  for (const NodeId user : users) {
    std::vector<NodeId> nodes = statistics_with_update(graph, user);
    if (nodes.empty()) continue;
    nodes.insert(nodes.begin(), first);
    return nodes;
  }
  return {};
}

std::string check_statistics(const Problem& problem) {
  const std::string reason = refuse_mixed_types(problem);
  if (!reason.empty()) return reason;
  return hopper::refuse(hopper::Role::forward, forward_geometry(problem), problem.input(0).dtype,
                        device_limits());
}

class BackwardData final : public Kernel {
 public:
  explicit BackwardData(const Problem& problem)
      : diff_dst_(place_of(problem, 0)),
        weights_(place_of(problem, 1)),
        images_(hopper::Role::data, problem,
                conv::geometry_of(attributes_of(problem), problem.output(0).shape,
                                  problem.input(diff_dst_).shape),
                problem.input(diff_dst_).dtype) {
    images_.choose();
    images_.describe(*this);
  }

  void run(const KernelArgs& args) const override {
    if (args.outputs[0].data == nullptr) return;
    images_.run(rows_of(args.inputs[diff_dst_]), args.inputs[weights_].data,
                rows_of(args.outputs[0]), {}, nullptr, args);
  }

 private:
  std::size_t diff_dst_, weights_;
  Images images_;
};

class BackwardWeights final : public Kernel {
 public:
  explicit BackwardWeights(const Problem& problem)
      : src_(place_of(problem, 0)), diff_dst_(place_of(problem, 1)) {
    const TensorSpec& src = problem.input(src_);
    const conv::Geometry geometry =
        conv::geometry_of(attributes_of(problem), src.shape, problem.input(diff_dst_).shape);
    plan_ = conv::plan_backward_weights(geometry, src.dtype, problem.graph->allows_tf32(),
                                        device_limits());
    workspace_bytes = plan_.workspace_bytes;
    implementation = plan_.text();
    flop_factor = plan_.joined;
    if (!hopper::refuse(hopper::Role::weights, geometry, src.dtype, device_limits()).empty()) {
      const auto stem = conv::stem_for(geometry, src.dtype, device_limits());
      if (!stem) return;
      stem_.emplace(*stem, src.dtype, device_limits());
      workspace_bytes = stem_->workspace_bytes();
      implementation = stem->text(stem_->plan.text());
      flop_factor = stem->flop_factor();
      return;
    }
    hopper_ = hopper::make_plan(hopper::Role::weights, geometry, src.dtype, device_limits());
    workspace_bytes = std::max(workspace_bytes, hopper_->workspace_bytes);
    implementation = hopper_->text();
    flop_factor = 1;
  }

  void run(const KernelArgs& args) const override {
    if (args.outputs[0].data == nullptr) return;
    const Rows src = rows_of(args.inputs[src_]), diff_dst = rows_of(args.inputs[diff_dst_]);
    void* diff_weights = args.outputs[0].data;
    if (hopper_ && hopper::fits(src, plan_.dtype) && hopper::fits(diff_dst, plan_.dtype)) {
      hopper::run_weights(*hopper_, src, diff_dst, diff_weights, args.workspace, stream_of(args));
    } else if (stem_) {
      stem_->run(src, diff_dst, diff_weights, args.workspace, stream_of(args));
    } else {
      conv::run_weights(plan_, src, diff_dst, diff_weights, args.workspace, stream_of(args));
    }
  }

 private:
  std::size_t src_, diff_dst_;
  conv::WeightsPlan plan_;
  std::optional<hopper::Plan> hopper_;
  std::optional<conv::StemBackwardWeights> stem_;
};

// Images and convolutions' weights lie nhwc, everything else plain. Weights and their gradients
// have no gaps.
template <typename Made>
std::unique_ptr<Kernel> make(const Problem& problem, std::span<const Layout>) {
  auto kernel = std::make_unique<Made>(problem);
  set_layouts(*kernel, problem, Layout::nhwc());
  kernel->traits.slices = true;
  return kernel;
}

constexpr KernelRow kRows[] = {
    {"conv2d_statistics", match_statistics, check_statistics, make<ForwardStatistics>},
    {"conv2d_epilogue", patterns::conv2d_epilogue, refuse_mixed_types, make<Forward>},
    {"conv2d", match_one<OpKind::conv2d>, refuse_mixed_types, make<Forward>},
    {"conv2d_backward_data", match_one<OpKind::conv2d_backward_data>, refuse_mixed_types,
     make<BackwardData>},
    {"conv2d_backward_weights", match_one<OpKind::conv2d_backward_weights>, refuse_mixed_types,
     make<BackwardWeights>},
    {"linear_epilogue", patterns::linear_epilogue, refuse_mixed_types, make<Forward>},
    {"linear", match_one<OpKind::linear>, refuse_mixed_types, make<Forward>},
    {"linear_backward_data", match_one<OpKind::linear_backward_data>, refuse_mixed_types,
     make<BackwardData>},
    {"linear_backward_weights", match_one<OpKind::linear_backward_weights>, refuse_mixed_types,
     make<BackwardWeights>},
};

}  // namespace

std::span<const KernelRow> conv_rows() { return kRows; }

}  // namespace ridgeline::cuda
