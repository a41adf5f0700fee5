// Products of elements, with factors that the pixels of a channel share (squeeze-and-excitation) or
// all of a channel do (layer scale), and the gradients of such factors.

#include "backends/cuda/conv/image_rows.h"
#include "backends/cuda/elementwise/multiply_kernels.h"
#include "backends/cuda/norm/batch_norm_kernels.h"
#include "backends/cuda/rows.h"
#include "backends/cuda/sums/counters.h"
#include "backends/cuda/sums/gradient_sums_kernels.h"
#include "backends/cuda/sums/image_sums_kernels.h"

namespace ridgeline::cuda {
namespace {

class MultiplyKernel final : public Kernel {
 public:
  MultiplyKernel(std::size_t factor, Broadcast broadcast)
      : factor_(factor), broadcast_(broadcast) {}

  void run(const KernelArgs& args) const override {
    const Shape& shape = args.inputs[0].shape();
    Multiply task;
    task.dtype = args.inputs[0].spec.dtype;
    task.src = rows_of(args.inputs[0]);
    task.factor = rows_of(args.inputs[factor_]);
    task.dst = rows_of(args.outputs[0]);
    if (broadcast_ == Broadcast::image) task.rows_of_factor = shape[2] * shape[3];
    launch_multiply(task, stream_of(args));
  }

 private:
  std::size_t factor_;
  Broadcast broadcast_;
};

// An apply with nothing but a scale.
class ScaleKernel final : public Kernel {
 public:
  void run(const KernelArgs& args) const override {
    NormApply task;
    task.dtype = args.inputs[0].spec.dtype;
    task.src = rows_of(args.inputs[0]);
    task.dst = rows_of(args.outputs[0]);
    task.scale = args.inputs[1].as<float>();
    launch_norm_apply(task, stream_of(args));
  }
};

std::unique_ptr<Kernel> make_multiply(const Problem& problem, std::span<const Layout>) {
  const Node& node = problem.node();
  const std::size_t factor = problem.input_index(node.inputs[1]);
  const Broadcast broadcast = broadcast_of(problem.input(0).shape, problem.input(factor).shape);
  std::unique_ptr<Kernel> kernel;
  if (broadcast == Broadcast::channel) {
    kernel = std::make_unique<ScaleKernel>();
  } else {
    kernel = std::make_unique<MultiplyKernel>(factor, broadcast);
  }
  set_layouts(*kernel, problem, Layout::nhwc());
  kernel->traits = {.slices = true, .in_place = true};
  return kernel;
}

// The sums over each image.
class GateGradient final : public Kernel {
 public:
  explicit GateGradient(const TensorSpec& a)
      : samples_(a.shape[0]), pixels_(a.shape[2] * a.shape[3]) {
    workspace_bytes = image_sums_bytes(a.dtype, samples_, pixels_, a.shape[1]);
  }

  void run(const KernelArgs& args) const override {
    ImageSums task;
    task.dtype = args.inputs[0].spec.dtype;
    task.src = rows_of(args.inputs[0]);
    task.other = rows_of(args.inputs.back());
    task.samples = samples_;
    task.pixels = pixels_;
    task.dst = rows_of(args.outputs[0]);
    task.workspace = reinterpret_cast<float*>(args.workspace);
    launch_image_sums(task, stream_of(args));
  }

 private:
  std::int64_t samples_, pixels_;
};

// The sums over each channel: those of a normalisation around 0, with deviation 1.
class ScaleGradient final : public Kernel {
 public:
  explicit ScaleGradient(const TensorSpec& a) {
    const SumScratch scratch =
        gradient_sums_scratch(a.dtype, a.shape.elements() / a.shape[1], a.shape[1], true);
    workspace_bytes = scratch.bytes;
    counters_ = take_counters(scratch.counters);
  }

  void run(const KernelArgs& args) const override {
    GradientSums task;
    task.dtype = args.inputs[0].spec.dtype;
    task.diff = rows_of(args.inputs[0]);
    task.src = rows_of(args.inputs.back());
    task.pack = word_pack_for(task.dtype, {task.diff, task.src});
    task.products = args.outputs[0].as<float>();
    task.workspace = args.workspace;
    task.counters = counters_;
    launch_gradient_sums(task, stream_of(args));
  }

 private:
  unsigned* counters_;
};

std::unique_ptr<Kernel> make_multiply_backward(const Problem& problem, std::span<const Layout>) {
  const auto& attributes = std::get<MultiplyAttributes>(problem.node().attributes);
  std::unique_ptr<Kernel> kernel;
  if (attributes.b == Broadcast::image) {
    kernel = std::make_unique<GateGradient>(problem.input(0));
  } else {
    kernel = std::make_unique<ScaleGradient>(problem.input(0));
  }
  set_layouts(*kernel, problem, Layout::nhwc());
  kernel->traits.slices = true;
  return kernel;
}

constexpr KernelRow kRows[] = {
    {"multiply", match_one<OpKind::multiply>, check_elements, make_multiply},
    {"multiply_backward", match_one<OpKind::multiply_backward>, check_channels,
     make_multiply_backward},
};

}  // namespace

std::span<const KernelRow> multiply_rows() { return kRows; }

}  // namespace ridgeline::cuda
