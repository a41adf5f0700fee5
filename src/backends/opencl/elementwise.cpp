// Work in which every element is alone: add, activation, both, bias, dropout and products; the
// gradients of activation, bias and products: [add +] activation_backward [+ bias_backward].

#include "backends/opencl/norm_apply.h"
#include "backends/opencl/rows.h"
#include "backends/opencl/sums.h"
#include "plan/patterns.h"

namespace ridgeline::opencl {
namespace {

class ElementwiseKernel final : public Kernel {
 public:
  // Where the second term stands, and what follows.
  ElementwiseKernel(Index other, ActivationCode activation)
      : other_(other), activation_(activation) {}

  void run(const KernelArgs& args) const override {
    const Rows src = rows_of(args.inputs[0]), other = rows_at(args.inputs, other_);
    const Rows dst = rows_of(args.outputs[0]);
    const ElementRange range = element_range({&src, &other, &dst});
    Launch(args, {"kernels/elementwise.cl", "add_act", number_option(src)})
        .rows(src)
        .rows(other)
        .rows(dst)
        .value(range.width)
        .value(range.rows)
        .value(activation_.kind)
        .value(activation_.slope)
        .run(range.items, range.group);
  }

 private:
  Index other_;
  ActivationCode activation_;
};

std::unique_ptr<Kernel> finished(std::unique_ptr<Kernel> kernel, const Problem& problem,
                                 bool in_place) {
  set_layouts(*kernel, problem, Layout::nhwc());
  kernel->traits = {.slices = true, .in_place = in_place};
  return kernel;
}

std::unique_ptr<Kernel> make_elementwise(const Problem& problem, std::span<const Layout>) {
  Index other;
  if (problem.node().kind == OpKind::add) {
    other = problem.input_index(problem.node().inputs[1]);
  }
  const Node& last = problem.node(problem.nodes.size() - 1);
  const ActivationCode activation = code_of(std::get_if<ActivationAttributes>(&last.attributes));
  return finished(std::make_unique<ElementwiseKernel>(other, activation), problem, true);
}

// An apply with nothing but a shift, or nothing but a scale.
class ChannelKernel final : public Kernel {
 public:
  explicit ChannelKernel(bool multiplies) : multiplies_(multiplies) {}

  void run(const KernelArgs& args) const override {
    NormApply task{.src = rows_of(args.inputs[0]), .other = {}, .dst = rows_of(args.outputs[0])};
    (multiplies_ ? task.scale : task.shift) = args.inputs[1].data;
    launch_norm_apply(args, task);
  }

 private:
  bool multiplies_;
};

std::unique_ptr<Kernel> make_bias(const Problem& problem, std::span<const Layout>) {
  return finished(std::make_unique<ChannelKernel>(false), problem, true);
}

class DropoutKernel final : public Kernel {
 public:
  explicit DropoutKernel(const DropoutAttributes& attributes) : attributes_(attributes) {}

  void run(const KernelArgs& args) const override {
    const Shape& shape = args.inputs[0].shape();
    const Rows src = rows_of(args.inputs[0]), dst = rows_of(args.outputs[0]);
    const std::int64_t pixels = shape.rank() == 4 ? shape[2] * shape[3] : 1;
    Launch(args, {"kernels/dropout.cl", "dropout", number_option(src)})
        .rows(src)
        .rows(dst)
        .buffer(args.state)
        .value(src.width)
        .value(src.rows)
        .value(pixels)
        .value(std::int32_t{attributes_.per_sample})
        .value(attributes_.layer)
        .value(static_cast<float>(attributes_.probability))
        .run({src.width, src.rows}, src.width >= 64 ? Size{64, 1} : Size{8, 8});
  }

 private:
  DropoutAttributes attributes_;
};

std::unique_ptr<Kernel> make_dropout(const Problem& problem, std::span<const Layout>) {
  const auto& attributes = std::get<DropoutAttributes>(problem.node().attributes);
  return finished(std::make_unique<DropoutKernel>(attributes), problem, true);
}

class MultiplyKernel final : public Kernel {
 public:
  explicit MultiplyKernel(std::size_t factor) : factor_(factor) {}

  void run(const KernelArgs& args) const override {
    const Rows src = rows_of(args.inputs[0]), factor = rows_of(args.inputs[factor_]);
    const Rows dst = rows_of(args.outputs[0]);
    Launch(args, {"kernels/elementwise.cl", "multiply", number_option(src)})
        .rows(src)
        .rows(factor)
        .rows(dst)
        .value(src.width)
        .value(src.rows)
        .value(src.rows / factor.rows)
        .run({src.width, src.rows}, src.width >= 64 ? Size{64, 1} : Size{8, 8});
  }

 private:
  std::size_t factor_;
};

std::unique_ptr<Kernel> make_multiply(const Problem& problem, std::span<const Layout>) {
  const std::size_t factor = problem.input_index(problem.node().inputs[1]);
  const Broadcast broadcast = broadcast_of(problem.input(0).shape, problem.input(factor).shape);
  if (broadcast == Broadcast::channel) {
    return finished(std::make_unique<ChannelKernel>(true), problem, true);
  }
  return finished(std::make_unique<MultiplyKernel>(factor), problem, true);
}

// The sums over each image, or over each channel.
class MultiplyBackward final : public Kernel {
 public:
  explicit MultiplyBackward(const Problem& problem) {
    const Shape& shape = problem.input(0).shape;
    image_ = std::get<MultiplyAttributes>(problem.node().attributes).b == Broadcast::image;
    if (!image_) {
      const std::int64_t rows = shape.elements() / shape[1];
      workspace_bytes = sums_bytes(rows, shape[1]);
    }
  }

  void run(const KernelArgs& args) const override {
    const Rows diff = rows_of(args.inputs[0]), src = rows_of(args.inputs.back());
    if (!image_) {
      launch_sums(args, {.diff = diff, .src = src, .products = args.outputs[0].data},
                  args.workspace);
      return;
    }
    const Rows dst = rows_of(args.outputs[0]);
    Launch(args, {"kernels/sums.cl", "image_sums", number_option(src)})
        .rows(diff)
        .rows(src)
        .rows(dst)
        .value(diff.width)
        .value(dst.rows)
        .value(diff.rows / dst.rows)
        .run({diff.width, dst.rows}, {16, 1});
  }

 private:
  bool image_ = false;
};

std::unique_ptr<Kernel> make_multiply_backward(const Problem& problem, std::span<const Layout>) {
  return finished(std::make_unique<MultiplyBackward>(problem), problem, false);
}

// Where the operands of an activation's gradient stand; diff_src is output 0.
struct GradientOperands {
  std::size_t diff = 0;
  Index kept, other;  // inputs
  Index stored, diff_bias;
  ActivationCode activation;
};

class GradientKernel final : public Kernel {
 public:
  GradientKernel(const GradientOperands& operands, const Shape& shape) : operands_(operands) {
    if (!operands.diff_bias) return;
    const std::int64_t rows = shape.elements() / shape[1];
    workspace_bytes = sums_bytes(rows, shape[1]);
  }

  void run(const KernelArgs& args) const override {
    const Rows diff = rows_of(args.inputs[operands_.diff]);
    const Rows kept = rows_at(args.inputs, operands_.kept);
    const Rows other = rows_at(args.inputs, operands_.other);
    if (operands_.diff_bias) {
      launch_sums(args,
                  {.diff = diff,
                   .other = other,
                   .kept = kept,
                   .stored = rows_at(args.outputs, operands_.stored),
                   .activation = operands_.activation,
                   .sums = data_at(args.outputs, operands_.diff_bias)},
                  args.workspace);
      return;
    }
    const Rows dst = rows_of(args.outputs[0]);
    const ElementRange range = element_range({&diff, &kept, &other, &dst});
    Launch(args, {"kernels/elementwise.cl", "act_backward", number_option(diff)})
        .rows(diff)
        .rows(other)
        .rows(kept)
        .rows(dst)
        .value(range.width)
        .value(range.rows)
        .value(operands_.activation.kind)
        .value(operands_.activation.slope)
        .run(range.items, range.group);
  }

 private:
  GradientOperands operands_;
};

std::unique_ptr<Kernel> make_gradient(const Problem& problem, std::span<const Layout>) {
  GradientOperands operands;
  operands.diff = problem.input_index(problem.node().inputs[0]);
  for (std::size_t i = 0; i < problem.nodes.size(); ++i) {
    const Node& node = problem.node(i);
    if (node.kind == OpKind::add) {
      operands.other = problem.input_index(node.inputs[1]);
    } else if (node.kind == OpKind::activation_backward) {
      operands.kept = problem.input_index(node.inputs[1]);
      operands.activation = code_of(&std::get<ActivationAttributes>(node.attributes));
      operands.stored = problem.output_index(node.outputs[0]);
    } else {
      operands.diff_bias = problem.output_index(node.outputs[0]);
    }
  }
  const Shape& shape = problem.input(operands.diff).shape;
  return finished(std::make_unique<GradientKernel>(operands, shape), problem,
                  problem.node().kind != OpKind::bias_backward);
}

constexpr KernelRow kRows[] = {
    {"add_act_backward_bias", patterns::add_act_backward_bias, check_channels, make_gradient},
    {"act_backward_bias", patterns::act_backward_bias, check_channels, make_gradient},
    {"add_act_backward", patterns::add_act_backward, check_elements, make_gradient},
    {"activation_backward", match_one<OpKind::activation_backward>, check_elements, make_gradient},
    {"bias_backward", match_one<OpKind::bias_backward>, check_channels, make_gradient},
    {"add_act", patterns::add_act, check_elements, make_elementwise},
    {"add", match_one<OpKind::add>, check_elements, make_elementwise},
    {"activation", match_one<OpKind::activation>, check_elements, make_elementwise},
    {"bias", match_one<OpKind::bias>, check_channels, make_bias},
    {"dropout", match_one<OpKind::dropout>, check_elements, make_dropout},
    {"multiply", match_one<OpKind::multiply>, check_elements, make_multiply},
    {"multiply_backward", match_one<OpKind::multiply_backward>, check_channels,
     make_multiply_backward},
};

}  // namespace

std::span<const KernelRow> elementwise_rows() { return kRows; }

}  // namespace ridgeline::opencl
