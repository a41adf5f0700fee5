// The gradients of activation and bias, alone and joined with what surrounds them:
// [add +] activation_backward [+ bias_backward].

#include "backends/cuda/conv/image_rows.h"
#include "backends/cuda/elementwise/elementwise_kernels.h"
#include "backends/cuda/rows.h"
#include "backends/cuda/sums/counters.h"
#include "backends/cuda/sums/gradient_sums_kernels.h"
#include "plan/patterns.h"

namespace ridgeline::cuda {
namespace {

// Where the operands stand among the kernel's arguments; diff_src is output 0.
struct GradientOperands {
  std::size_t diff_dst = 0, kept = 0;
  Index other;  // added to diff_dst before
};

class ActivationBackward final : public Kernel {
 public:
  ActivationBackward(const GradientOperands& operands, ActivationCode activation)
      : operands_(operands), activation_(activation) {}

  void run(const KernelArgs& args) const override {
    Elementwise task;
    task.dtype = args.inputs[operands_.diff_dst].spec.dtype;
    task.src = rows_of(args.inputs[operands_.diff_dst]);
    task.other = rows_at(args.inputs, operands_.other);
    task.kept = rows_of(args.inputs[operands_.kept]);
    task.dst = rows_of(args.outputs[0]);
    task.activation = activation_.kind;
    task.slope = activation_.slope;
    launch_elementwise(task, stream_of(args));
  }

 private:
  GradientOperands operands_;
  ActivationCode activation_;
};

// bias_backward, also behind an activation_backward whose result is then output 0.
class BiasBackward final : public Kernel {
 public:
  BiasBackward(const GradientOperands& operands, ActivationCode activation, Index diff_src,
               std::size_t diff_bias, const TensorSpec& diff)
      : operands_(operands), activation_(activation), diff_src_(diff_src), diff_bias_(diff_bias) {
    const SumScratch scratch = gradient_sums_scratch(
        diff.dtype, diff.shape.elements() / diff.shape[1], diff.shape[1], false);
    workspace_bytes = scratch.bytes;
    counters_ = take_counters(scratch.counters);
  }

  void run(const KernelArgs& args) const override {
    GradientSums task;
    task.dtype = args.inputs[operands_.diff_dst].spec.dtype;
    task.diff = rows_of(args.inputs[operands_.diff_dst]);
    task.other = rows_at(args.inputs, operands_.other);
    if (activation_.kind != kNoActivation) task.kept = rows_of(args.inputs[operands_.kept]);
    task.stored = rows_at(args.outputs, diff_src_);
    task.pack = word_pack_for(task.dtype, {task.diff, task.other, task.kept, task.stored});
    task.activation = activation_.kind;
    task.slope = activation_.slope;
    task.sums = args.outputs[diff_bias_].as<float>();
    task.workspace = args.workspace;
    task.counters = counters_;
    launch_gradient_sums(task, stream_of(args));
  }

 private:
  GradientOperands operands_;
  ActivationCode activation_;
  Index diff_src_;
  std::size_t diff_bias_;
  unsigned* counters_;
};

std::unique_ptr<Kernel> make_gradient(const Problem& problem, std::span<const Layout>) {
  const std::size_t at = problem.node().kind == OpKind::add ? 1 : 0;
  const Node& node = problem.node(at);
  GradientOperands operands;
  operands.diff_dst = problem.input_index(problem.node().inputs[0]);
  operands.kept = problem.input_index(node.inputs[1]);
  if (at == 1) operands.other = problem.input_index(problem.node().inputs[1]);
  const ActivationCode activation = code_of(&std::get<ActivationAttributes>(node.attributes));
  std::unique_ptr<Kernel> kernel;
  if (at + 1 < problem.nodes.size()) {
    kernel = std::make_unique<BiasBackward>(
        operands, activation, problem.output_index(node.outputs[0]),
        problem.output_index(problem.node(at + 1).outputs[0]), problem.input(operands.diff_dst));
  } else {
    kernel = std::make_unique<ActivationBackward>(operands, activation);
  }
  set_layouts(*kernel, problem, Layout::nhwc());
  kernel->traits = {.slices = true, .in_place = true};
  return kernel;
}

std::unique_ptr<Kernel> make_bias_backward(const Problem& problem, std::span<const Layout>) {
  auto kernel = std::make_unique<BiasBackward>(GradientOperands{}, ActivationCode{}, Index{}, 0,
                                               problem.input(0));
  set_layouts(*kernel, problem, Layout::nhwc());
  kernel->traits = {.slices = true};
  return kernel;
}

constexpr KernelRow kRows[] = {
    {"add_act_backward_bias", patterns::add_act_backward_bias, check_channels, make_gradient},
    {"act_backward_bias", patterns::act_backward_bias, check_channels, make_gradient},
    {"add_act_backward", patterns::add_act_backward, check_elements, make_gradient},
    {"activation_backward", match_one<OpKind::activation_backward>, check_elements, make_gradient},
    {"bias_backward", match_one<OpKind::bias_backward>, check_channels, make_bias_backward},
};

}  // namespace

std::span<const KernelRow> activation_backward_rows() { return kRows; }

}  // namespace ridgeline::cuda
