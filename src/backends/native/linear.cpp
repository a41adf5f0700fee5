#include "backends/native/conv_bf16.h"
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

// What the nodes behind a product add to it.
struct LinearEpilogue {
  Epilogue epilogue;
  bool biased = false;
};

LinearEpilogue epilogue_of(const Problem& problem) {
  LinearEpilogue result;
  for (const NodeId id : problem.nodes) {
    const Node& node = problem.graph->node(id);
    if (node.kind == OpKind::bias) result.biased = true;
    if (node.kind == OpKind::activation) {
      const auto& attributes = std::get<ActivationAttributes>(node.attributes);
      result.epilogue.activate = true;
      result.epilogue.activation = attributes.kind;
      result.epilogue.slope = static_cast<float>(attributes.slope);
    }
  }
  return result;
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
              thread_count()),
        epilogue_(epilogue_of(problem)) {
    workspace_bytes = gemm_.workspace_bytes();
  }

  void run(const KernelArgs& args) const override {
    const Tensor& dst = args.outputs[0];
    if (dst.data == nullptr) return;
    Epilogue epilogue = epilogue_.epilogue;
    if (epilogue_.biased) epilogue.bias = args.inputs[2].as<float>();
    gemm_.run(matrix(args.inputs[0]), transposed(args.inputs[1]), dst.as<float>(), dst.strides[0],
              epilogue, args.workspace);
  }

 private:
  Gemm gemm_;
  LinearEpilogue epilogue_;
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

// A convolution of images of one pixel.
conv::Geometry forward_geometry(std::int64_t rows, std::int64_t src, std::int64_t dst) {
  const Conv2dAttributes attributes{.kernel_h = 1, .kernel_w = 1};
  return conv::forward_geometry(attributes, {rows, src, 1, 1}, {rows, dst, 1, 1});
}

Tensor as_image(const Tensor& rows) {
  Tensor image = rows;
  image.strides = {rows.strides[0], 1, rows.strides[0], rows.strides[0]};
  return image;
}

// The same three in bf16.
class LinearForwardBf16 final : public Kernel {
 public:
  explicit LinearForwardBf16(const Problem& problem) : epilogue_(epilogue_of(problem)) {
    const Shape &src = problem.input(0).shape, &weights = problem.input(1).shape;
    conv::Geometry geometry = forward_geometry(src[0], src[1], weights[0]);
    const conv::NhwcWeights order = conv::forward_weights(geometry);
    plan_ = conv::make_bf16_plan(std::move(geometry), order, bf16_unit(), thread_count());
    workspace_bytes = plan_.workspace_bytes;
  }

  void run(const KernelArgs& args) const override {
    if (args.outputs[0].data == nullptr) return;
    Epilogue epilogue = epilogue_.epilogue;
    if (epilogue_.biased) epilogue.bias = args.inputs[2].as<float>();
    conv::run_bf16(plan_, as_image(args.inputs[0]), args.inputs[1].as<BFloat16>(),
                   as_image(args.outputs[0]), epilogue, args.workspace);
  }

 private:
  LinearEpilogue epilogue_;
  conv::Bf16Plan plan_;
};

class LinearBackwardDataBf16 final : public Kernel {
 public:
  explicit LinearBackwardDataBf16(const Problem& problem) {
    const Shape &diff_dst = problem.input(0).shape, &weights = problem.input(1).shape;
    conv::Geometry geometry = forward_geometry(diff_dst[0], diff_dst[1], weights[1]);
    const conv::NhwcWeights order = conv::backward_data_weights(geometry);
    plan_ = conv::make_bf16_plan(std::move(geometry), order, bf16_unit(), thread_count());
    workspace_bytes = plan_.workspace_bytes;
  }

  void run(const KernelArgs& args) const override {
    if (args.outputs[0].data == nullptr) return;
    conv::run_bf16(plan_, as_image(args.inputs[0]), args.inputs[1].as<BFloat16>(),
                   as_image(args.outputs[0]), {}, args.workspace);
  }

 private:
  conv::Bf16Plan plan_;
};

class LinearBackwardWeightsBf16 final : public Kernel {
 public:
  explicit LinearBackwardWeightsBf16(const Problem& problem) {
    const Shape &src = problem.input(0).shape, &diff_dst = problem.input(1).shape;
    plan_ = conv::make_bf16_weights_plan(forward_geometry(src[0], src[1], diff_dst[1]), bf16_unit(),
                                         thread_count());
    workspace_bytes = plan_.workspace_bytes;
  }

  void run(const KernelArgs& args) const override {
    if (args.outputs[0].data == nullptr) return;
    conv::run_bf16_weights(plan_, as_image(args.inputs[0]), as_image(args.inputs[1]),
                           args.outputs[0].as<BFloat16>(), args.workspace);
  }

 private:
  conv::Bf16WeightsPlan plan_;
};

template <typename LinearKernel, typename Bf16Kernel>
std::unique_ptr<Kernel> make(const Problem& problem, std::span<const Layout>) {
  std::unique_ptr<Kernel> kernel;
  if (problem.input(0).dtype == DType::bf16) {
    kernel = std::make_unique<Bf16Kernel>(problem);
    kernel->unit = name_of(bf16_unit());
  } else {
    kernel = std::make_unique<LinearKernel>(problem);
  }
  set_layouts(*kernel, problem, Layout::nhwc());
  kernel->traits.slices = true;
  return kernel;
}

const KernelRow kRows[] = {
    mlp_step_row,
    {"linear_epilogue", patterns::linear_epilogue, refuse_product,
     make<LinearForward, LinearForwardBf16>},
    {"linear", match_one<OpKind::linear>, refuse_product, make<LinearForward, LinearForwardBf16>},
    {"linear_backward_data", match_one<OpKind::linear_backward_data>, refuse_product,
     make<LinearBackwardData, LinearBackwardDataBf16>},
    {"linear_backward_weights", match_one<OpKind::linear_backward_weights>, refuse_product,
     make<LinearBackwardWeights, LinearBackwardWeightsBf16>},
};

}  // namespace

std::span<const KernelRow> linear_rows() { return kRows; }

}  // namespace ridgeline::native
