// What is done to all gradients of a step together: sums over several passes, and clipping by norm.

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "backends/cuda/common.h"
#include "backends/cuda/rows.h"
#include "backends/cuda/training/gradients_kernels.h"

namespace ridgeline::cuda {
namespace {

// Calls body(first, tensors, count) for as many tensors at a time as a launch takes.
template <typename TensorAt, typename Body>
void in_launches(std::size_t count, TensorAt tensor_at, Body body) {
  GradientTensor tensors[kGradientTensors];
  for (std::size_t first = 0; first < count; first += kGradientTensors) {
    const std::size_t some = std::min<std::size_t>(kGradientTensors, count - first);
    for (std::size_t i = 0; i < some; ++i) tensors[i] = tensor_at(first + i);
    body(first, tensors, static_cast<int>(some));
  }
}

class Accumulate final : public Kernel {
 public:
  explicit Accumulate(const Problem& problem)
      : first_(std::get<AccumulateAttributes>(problem.node().attributes).first) {
    for (const ValueId input : problem.node().inputs) {
      arguments_.push_back(problem.input_index(input));
    }
    set_layouts(*this, problem, Layout::plain());
  }

  void run(const KernelArgs& args) const override {
    const std::size_t sums = arguments_.size() / 2;
    const auto tensor_at = [&](std::size_t i) {
      const Tensor& value = args.inputs[arguments_[sums + i]];
      const float* sum = first_ ? nullptr : args.inputs[arguments_[i]].as<const float>();
      return GradientTensor{value.data, args.outputs[i].data, value.shape().elements(),
                            value.spec.dtype, sum};
    };
    in_launches(sums, tensor_at, [&](std::size_t, const GradientTensor* tensors, int count) {
      launch_accumulate(tensors, count, stream_of(args));
    });
  }

 private:
  bool first_;
  std::vector<std::size_t> arguments_;  // sums, then values
};

class ClipNorm final : public Kernel {
 public:
  // A norm looks at no position: gradients stay as they lie.
  ClipNorm(const Problem& problem, std::span<const Layout> layouts)
      : largest_(std::get<ClipNormAttributes>(problem.node().attributes).largest) {
    for (const ValueId input : problem.node().inputs) {
      arguments_.push_back(problem.input_index(input));
      output_layouts.push_back(layouts[arguments_.back()]);
    }
    input_layouts.assign(layouts.begin(), layouts.end());
    workspace_bytes = arguments_.size() * kSquareParts * sizeof(double) + sizeof(double);
  }

  void run(const KernelArgs& args) const override {
    auto* const parts = reinterpret_cast<double*>(args.workspace);
    const std::size_t count = arguments_.size() * kSquareParts;
    auto* const factor = reinterpret_cast<float*>(parts + count);
    const auto tensor_at = [&](std::size_t i) {
      const Tensor& src = args.inputs[arguments_[i]];
      return GradientTensor{src.data, args.outputs[i].data, src.shape().elements(), src.spec.dtype};
    };
    in_launches(arguments_.size(), tensor_at,
                [&](std::size_t first, const GradientTensor* tensors, int some) {
                  launch_squares(tensors, some, parts + first * kSquareParts, stream_of(args));
                });
    launch_clip_factor(parts, static_cast<int>(count), largest_, args.state, factor,
                       stream_of(args));
    in_launches(arguments_.size(), tensor_at,
                [&](std::size_t, const GradientTensor* tensors, int some) {
                  launch_shrink(tensors, some, factor, stream_of(args));
                });
  }

 private:
  double largest_;
  std::vector<std::size_t> arguments_;
};

std::unique_ptr<Kernel> make_accumulate(const Problem& problem, std::span<const Layout>) {
  return std::make_unique<Accumulate>(problem);
}
std::unique_ptr<Kernel> make_clip_norm(const Problem& problem, std::span<const Layout> layouts) {
  return std::make_unique<ClipNorm>(problem, layouts);
}

constexpr KernelRow kRows[] = {
    {"accumulate", match_one<OpKind::accumulate>, refuse_doubles, make_accumulate},
    {"clip_norm", match_one<OpKind::clip_norm>, refuse_doubles, make_clip_norm},
};

}  // namespace

std::span<const KernelRow> gradient_rows() { return kRows; }

}  // namespace ridgeline::cuda
