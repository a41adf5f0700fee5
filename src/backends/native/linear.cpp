#include "backends/native/gemm.h"
#include "backends/native/mlp_step.h"
#include "backends/native/row_space.h"
#include "backends/native/rows.h"
#include "base/parallel.h"
#include "plan/patterns.h"

namespace ridgeline::native {
namespace {

MatrixView matrix(const Tensor& tensor) {
  return {tensor.as<float>(), tensor.strides[0], tensor.strides[1]};
}

MatrixView transposed(const Tensor& tensor) {
  return {tensor.as<float>(), tensor.strides[1], tensor.strides[0]};
}

// dst = src · weightsᵀ, with what the pattern's other nodes add.
class LinearForward final : public Kernel {
 public:
  explicit LinearForward(const Problem& problem)
      : gemm_({.rows = problem.input(0).shape[0],
               .columns = problem.input(1).shape[0],
               .depth = problem.input(0).shape[1],
               .left = Contiguous::columns,
               .right = Contiguous::rows},
              thread_count()) {
    for (const NodeId id : problem.nodes) {
      const Node& node = problem.graph->node(id);
      if (node.kind == OpKind::bias) biased_ = true;
      if (node.kind == OpKind::activation) {
        const auto& attributes = std::get<ActivationAttributes>(node.attributes);
        epilogue_.activate = true;
        epilogue_.activation = attributes.kind;
        epilogue_.slope = static_cast<float>(attributes.slope);
      }
    }
    workspace_bytes = gemm_.workspace_bytes();
  }

  void run(const KernelArgs& args) const override {
    const Tensor& dst = args.outputs[0];
    if (dst.data == nullptr) return;
    Epilogue epilogue = epilogue_;
    if (biased_) epilogue.bias = args.inputs[2].as<float>();
    gemm_.run(matrix(args.inputs[0]), transposed(args.inputs[1]), dst.as<float>(), dst.strides[0],
              epilogue, args.workspace);
  }

 private:
  Gemm gemm_;
  Epilogue epilogue_;
  bool biased_ = false;
};

// diff_src = diff_dst · weights.
class LinearBackwardData final : public Kernel {
 public:
  explicit LinearBackwardData(const Problem& problem)
      : gemm_({.rows = problem.input(0).shape[0],
               .columns = problem.input(1).shape[1],
               .depth = problem.input(0).shape[1],
               .left = Contiguous::columns,
               .right = Contiguous::columns},
              thread_count()) {
    workspace_bytes = gemm_.workspace_bytes();
  }

  void run(const KernelArgs& args) const override {
    const Tensor& diff_src = args.outputs[0];
    if (diff_src.data == nullptr) return;
    gemm_.run(matrix(args.inputs[0]), matrix(args.inputs[1]), diff_src.as<float>(),
              diff_src.strides[0], {}, args.workspace);
  }

 private:
  Gemm gemm_;
};

// diff_weights = diff_dstᵀ · src.
class LinearBackwardWeights final : public Kernel {
 public:
  explicit LinearBackwardWeights(const Problem& problem)
      : gemm_({.rows = problem.input(1).shape[1],
               .columns = problem.input(0).shape[1],
               .depth = problem.input(0).shape[0],
               .left = Contiguous::rows,
               .right = Contiguous::columns},
              thread_count()) {
    workspace_bytes = gemm_.workspace_bytes();
  }

  void run(const KernelArgs& args) const override {
    const Tensor& diff_weights = args.outputs[0];
    if (diff_weights.data == nullptr) return;
    gemm_.run(transposed(args.inputs[1]), matrix(args.inputs[0]), diff_weights.as<float>(),
              diff_weights.strides[0], {}, args.workspace);
  }

 private:
  Gemm gemm_;
};

template <typename LinearKernel>
std::unique_ptr<Kernel> make(const Problem& problem, std::span<const Layout>) {
  auto kernel = std::make_unique<LinearKernel>(problem);
  set_layouts(*kernel, problem, Layout::nhwc());
  kernel->traits.slices = true;
  return kernel;
}

const KernelRow kRows[] = {
    mlp_step_row,
    {"linear_epilogue", patterns::linear_epilogue, refuse_other_than_f32, make<LinearForward>},
    {"linear", match_one<OpKind::linear>, refuse_other_than_f32, make<LinearForward>},
    {"linear_backward_data", match_one<OpKind::linear_backward_data>, refuse_other_than_f32,
     make<LinearBackwardData>},
    {"linear_backward_weights", match_one<OpKind::linear_backward_weights>, refuse_other_than_f32,
     make<LinearBackwardWeights>},
};

}  // namespace

std::span<const KernelRow> linear_rows() { return kRows; }

}  // namespace ridgeline::native
