#include <fmt/core.h>

#include "backends/cuda/common.h"
#include "backends/cuda/conv/conv_plan.h"
#include "backends/cuda/rows.h"
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

class Forward final : public Kernel {
 public:
  explicit Forward(const Problem& problem)
      : src_(place_of(problem, 0)), weights_(place_of(problem, 1)) {
    for (const NodeId id : problem.nodes) {
      const Node& node = problem.graph->node(id);
      if (node.kind == OpKind::bias) bias_ = problem.input_index(node.inputs[1]);
      if (node.kind == OpKind::activation) {
        const auto& attributes = std::get<ActivationAttributes>(node.attributes);
        epilogue_ = conv::epilogue_of(static_cast<int>(attributes.kind),
                                      static_cast<float>(attributes.slope));
      }
    }
    const TensorSpec& src = problem.input(src_);
    plan_ = conv::plan_forward(
        conv::geometry_of(attributes_of(problem), src.shape, problem.output(0).shape), src.dtype,
        problem.graph->allows_tf32(), device_limits());
    workspace_bytes = plan_.workspace_bytes;
    implementation = plan_.text();
    flop_factor = plan_.joined;
  }

  void run(const KernelArgs& args) const override {
    if (args.outputs[0].data == nullptr) return;
    conv::Epilogue epilogue = epilogue_;
    if (bias_ != kNoBias) epilogue.bias = args.inputs[bias_].as<float>();
    conv::run_gather(plan_, rows_of(args.inputs[src_]), args.inputs[weights_].data,
                     rows_of(args.outputs[0]), epilogue, args.workspace, stream_of(args));
  }

 private:
  static constexpr std::size_t kNoBias = ~std::size_t{0};

  std::size_t src_, weights_, bias_ = kNoBias;
  conv::Epilogue epilogue_;
  conv::GatherPlan plan_;
};

class BackwardData final : public Kernel {
 public:
  explicit BackwardData(const Problem& problem)
      : diff_dst_(place_of(problem, 0)), weights_(place_of(problem, 1)) {
    const TensorSpec& diff_dst = problem.input(diff_dst_);
    plan_ = conv::plan_backward_data(
        conv::geometry_of(attributes_of(problem), problem.output(0).shape, diff_dst.shape),
        diff_dst.dtype, problem.graph->allows_tf32(), device_limits());
    workspace_bytes = plan_.workspace_bytes;
    implementation = plan_.text();
    flop_factor = plan_.joined;
  }

  void run(const KernelArgs& args) const override {
    if (args.outputs[0].data == nullptr) return;
    conv::run_gather(plan_, rows_of(args.inputs[diff_dst_]), args.inputs[weights_].data,
                     rows_of(args.outputs[0]), {}, args.workspace, stream_of(args));
  }

 private:
  std::size_t diff_dst_, weights_;
  conv::GatherPlan plan_;
};

class BackwardWeights final : public Kernel {
 public:
  explicit BackwardWeights(const Problem& problem)
      : src_(place_of(problem, 0)), diff_dst_(place_of(problem, 1)) {
    const TensorSpec& src = problem.input(src_);
    plan_ = conv::plan_backward_weights(
        conv::geometry_of(attributes_of(problem), src.shape, problem.input(diff_dst_).shape),
        src.dtype, problem.graph->allows_tf32(), device_limits());
    workspace_bytes = plan_.workspace_bytes;
    implementation = plan_.text();
    flop_factor = plan_.joined;
  }

  void run(const KernelArgs& args) const override {
    if (args.outputs[0].data == nullptr) return;
    conv::run_weights(plan_, rows_of(args.inputs[src_]), rows_of(args.inputs[diff_dst_]),
                      args.outputs[0].data, args.workspace, stream_of(args));
  }

 private:
  std::size_t src_, diff_dst_;
  conv::WeightsPlan plan_;
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
