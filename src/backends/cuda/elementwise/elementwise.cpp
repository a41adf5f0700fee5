// Forward work in which every element is alone: bias, activation, add, add + activation, dropout,
// the ends of blocks, and casts.

#include "backends/cuda/conv/image_rows.h"
#include "backends/cuda/elementwise/cast.h"
#include "backends/cuda/elementwise/dropout_kernels.h"
#include "backends/cuda/elementwise/elementwise_kernels.h"
#include "backends/cuda/norm/batch_norm_kernels.h"
#include "backends/cuda/rows.h"
#include "plan/patterns.h"

namespace ridgeline::cuda {
namespace {

class ElementwiseKernel final : public Kernel {
 public:
  // Where the second term stands, and what follows.
  ElementwiseKernel(Index other, ActivationCode activation)
      : other_(other), activation_(activation) {}

  void run(const KernelArgs& args) const override {
    Elementwise task;
    task.dtype = args.inputs[0].spec.dtype;
    task.src = rows_of(args.inputs[0]);
    task.other = rows_at(args.inputs, other_);
    task.dst = rows_of(args.outputs[0]);
    task.activation = activation_.kind;
    task.slope = activation_.slope;
    launch_elementwise(task, stream_of(args));
  }

 private:
  Index other_;
  ActivationCode activation_;
};

// An apply that normalises nothing.
class Bias final : public Kernel {
 public:
  void run(const KernelArgs& args) const override {
    NormApply task;
    task.dtype = args.inputs[0].spec.dtype;
    task.src = rows_of(args.inputs[0]);
    task.dst = rows_of(args.outputs[0]);
    task.shift = args.inputs[1].as<float>();
    launch_norm_apply(task, stream_of(args));
  }
};

Dropout dropout_of(const DropoutAttributes& attributes, const Tensor& src, const KernelArgs& args) {
  const Shape& shape = src.shape();
  Dropout task;
  task.dtype = src.spec.dtype;
  task.src = rows_of(src);
  task.dst = rows_of(args.outputs[0]);
  task.pixels = shape.rank() == 4 ? shape[2] * shape[3] : 1;
  task.probability = static_cast<float>(attributes.probability);
  task.layer = attributes.layer;
  task.per_sample = attributes.per_sample;
  task.state = args.state;
  return task;
}

class DropoutKernel final : public Kernel {
 public:
  explicit DropoutKernel(const DropoutAttributes& attributes) : attributes_(attributes) {}

  void run(const KernelArgs& args) const override {
    launch_dropout(dropout_of(attributes_, args.inputs[0], args), stream_of(args));
  }

 private:
  DropoutAttributes attributes_;
};

// The end of a block: [layer scale +] [dropout of samples +] add.
class ScaleChain final : public Kernel {
 public:
  explicit ScaleChain(const patterns::ScaleOperands& operands) : operands_(operands) {}

  void run(const KernelArgs& args) const override {
    const Tensor& src = args.inputs[operands_.src];
    const float* factor = floats_at(args.inputs, operands_.factor);
    if (operands_.dropout) {
      Dropout task = dropout_of(*operands_.dropout, src, args);
      task.other = rows_at(args.inputs, operands_.other);
      task.factor = factor;
      launch_dropout(task, stream_of(args));
      return;
    }
    NormApply task;
    task.dtype = src.spec.dtype;
    task.src = rows_of(src);
    task.other = rows_at(args.inputs, operands_.other);
    task.dst = rows_of(args.outputs[0]);
    task.scale = factor;
    launch_norm_apply(task, stream_of(args));
  }

 private:
  patterns::ScaleOperands operands_;
};

std::unique_ptr<Kernel> finished(std::unique_ptr<Kernel> kernel, const Problem& problem) {
  set_layouts(*kernel, problem, Layout::nhwc());
  kernel->traits = {.slices = true, .in_place = true};
  return kernel;
}

std::unique_ptr<Kernel> make_elementwise(const Problem& problem, std::span<const Layout>) {
  const Node& first = problem.node();
  const Node& last = problem.node(problem.nodes.size() - 1);
  Index other;
  if (first.kind == OpKind::add) other = problem.input_index(first.inputs[1]);
  const ActivationCode activation = code_of(std::get_if<ActivationAttributes>(&last.attributes));
  return finished(std::make_unique<ElementwiseKernel>(other, activation), problem);
}

std::unique_ptr<Kernel> make_bias(const Problem& problem, std::span<const Layout>) {
  return finished(std::make_unique<Bias>(), problem);
}

std::unique_ptr<Kernel> make_dropout(const Problem& problem, std::span<const Layout>) {
  const auto& attributes = std::get<DropoutAttributes>(problem.node().attributes);
  return finished(std::make_unique<DropoutKernel>(attributes), problem);
}

std::unique_ptr<Kernel> make_scale_chain(const Problem& problem, std::span<const Layout>) {
  return finished(std::make_unique<ScaleChain>(patterns::scale_operands(problem)), problem);
}

constexpr KernelRow kRows[] = {
    {"scale_chain", patterns::scale_chain, check_channels, make_scale_chain},
    {"cast_all", match_parameter_casts, check_parameter_casts, make_parameter_casts},
    {"add_act", patterns::add_act, check_elements, make_elementwise},
    {"bias", match_one<OpKind::bias>, check_channels, make_bias},
    {"activation", match_one<OpKind::activation>, check_elements, make_elementwise},
    {"add", match_one<OpKind::add>, check_elements, make_elementwise},
    {"dropout", match_one<OpKind::dropout>, check_elements, make_dropout},
    {"cast", match_one<OpKind::cast>, check_cast, make_cast},
};

}  // namespace

std::span<const KernelRow> elementwise_rows() { return kRows; }

}  // namespace ridgeline::cuda
