// Layer norm and group norm, and their gradients.

#include "backends/cuda/conv/image_rows.h"
#include "backends/cuda/norm/layer_norm_kernels.h"
#include "backends/cuda/rows.h"

namespace ridgeline::cuda {
namespace {

const LayerNormAttributes& norm_of(const Problem& problem) {
  return std::get<LayerNormAttributes>(problem.node().attributes);
}

class Forward final : public Kernel {
 public:
  explicit Forward(const LayerNormAttributes& attributes) : attributes_(attributes) {}

  void run(const KernelArgs& args) const override {
    const Shape& shape = args.inputs[0].shape();
    LayerNorm task;
    task.dtype = args.inputs[0].spec.dtype;
    task.src = rows_of(args.inputs[0]);
    task.dst = rows_at(args.outputs, 0);
    task.groups = attributes_.groups;
    task.pixels = shape.height() * shape.width();
    task.scale = args.inputs[1].as<float>();
    task.shift = args.inputs.back().as<float>();
    task.epsilon = attributes_.epsilon;
    task.mean = args.outputs[1].as<float>();
    task.inverse = args.outputs[2].as<float>();
    if (attributes_.groups == 0) {
      launch_layer_norm(task, stream_of(args));
    } else {
      launch_group_norm(task, stream_of(args));
    }
  }

 private:
  LayerNormAttributes attributes_;
};

class Backward final : public Kernel {
 public:
  // Where a node's inputs stand among the kernel's: one value may be two of them.
  Backward(const LayerNormAttributes& attributes, const Problem& problem)
      : attributes_(attributes) {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      inputs_[i] = problem.input_index(problem.node().inputs[i]);
    }
    workspace_bytes = layer_norm_bytes(problem.input(inputs_[1]).shape[1]);
  }

  void run(const KernelArgs& args) const override {
    const auto input = [&](std::size_t i) -> const Tensor& { return args.inputs[inputs_[i]]; };
    const Shape& shape = input(1).shape();
    LayerNormBackward task;
    task.dtype = input(1).spec.dtype;
    task.diff = rows_of(input(0));
    task.src = rows_of(input(1));
    task.diff_src = rows_at(args.outputs, 0);
    task.groups = attributes_.groups;
    task.pixels = shape.height() * shape.width();
    task.mean = input(2).as<float>();
    task.inverse = input(3).as<float>();
    task.scale = input(4).as<float>();
    task.diff_scale = args.outputs[1].as<float>();
    task.diff_shift = args.outputs[2].as<float>();
    task.workspace = reinterpret_cast<float*>(args.workspace);
    if (attributes_.groups == 0) {
      launch_layer_norm_backward(task, stream_of(args));
    } else {
      launch_group_norm_backward(task, stream_of(args));
    }
  }

 private:
  LayerNormAttributes attributes_;
  std::array<std::size_t, 5> inputs_{};
};

std::unique_ptr<Kernel> finished(std::unique_ptr<Kernel> kernel, const Problem& problem) {
  set_layouts(*kernel, problem, Layout::nhwc());
  kernel->traits.slices = true;
  return kernel;
}

std::unique_ptr<Kernel> make_forward(const Problem& problem, std::span<const Layout>) {
  return finished(std::make_unique<Forward>(norm_of(problem)), problem);
}

std::unique_ptr<Kernel> make_backward(const Problem& problem, std::span<const Layout>) {
  return finished(std::make_unique<Backward>(norm_of(problem), problem), problem);
}

// Packs are counted in 31 bits.
std::string check(const Problem& problem) {
  if (problem.input(0).shape.elements() >= std::int64_t{1} << 31) return "2^31 elements or more";
  return refuse_doubles(problem);
}

constexpr KernelRow kRows[] = {
    {"layer_norm", match_one<OpKind::layer_norm>, check, make_forward},
    {"layer_norm_backward", match_one<OpKind::layer_norm_backward>, check, make_backward},
};

}  // namespace

std::span<const KernelRow> layer_norm_rows() { return kRows; }

}  // namespace ridgeline::cuda
