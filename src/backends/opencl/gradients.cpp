// What is done to all gradients of a step together: sums over several passes, and clipping by norm.

#include <vector>

#include "backends/opencl/rows.h"
#include "backends/opencl/sums.h"

namespace ridgeline::opencl {
namespace {

constexpr const char* kFile = "kernels/gradients.cl";
constexpr std::int64_t kItems = 1024;  // of a launch
constexpr Size kGroup = {64};

Launch launch_of(const KernelArgs& args, const char* kernel, const Tensor& gradient) {
  return {args, {kFile, kernel, number_option(gradient.spec.dtype == DType::f16)}};
}

class Accumulate final : public Kernel {
 public:
  explicit Accumulate(const Problem& problem)
      : first_(std::get<AccumulateAttributes>(problem.node().attributes).first) {
    for (const ValueId input : problem.node().inputs) {
      inputs_.push_back(problem.input_index(input));
    }
  }

  void run(const KernelArgs& args) const override {
    const std::size_t sums = inputs_.size() / 2;
    for (std::size_t i = 0; i < sums; ++i) {
      const Tensor& value = args.inputs[inputs_[sums + i]];
      launch_of(args, "accumulate", value)
          .buffer(args.inputs[inputs_[i]].data)
          .buffer(value.data)
          .buffer(args.outputs[i].data)
          .value(value.shape().elements())
          .value(std::int32_t{first_})
          .run({kItems}, kGroup);
    }
  }

 private:
  bool first_;
  std::vector<std::size_t> inputs_;  // sums, then values
};

class ClipNorm final : public Kernel {
 public:
  explicit ClipNorm(const Problem& problem)
      : largest_(std::get<ClipNormAttributes>(problem.node().attributes).largest) {
    for (const ValueId input : problem.node().inputs) {
      inputs_.push_back(problem.input_index(input));
    }
    parts_ = static_cast<std::int64_t>(inputs_.size()) * kItems;
    workspace_bytes = float_bytes(parts_) + float_bytes(1);
  }

  void run(const KernelArgs& args) const override {
    const std::byte* factor = args.workspace + float_bytes(parts_);
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const Tensor& gradient = args.inputs[inputs_[i]];
      launch_of(args, "squares", gradient)
          .buffer(gradient.data)
          .buffer(args.workspace + static_cast<std::int64_t>(i) * kItems * 4)
          .value(gradient.shape().elements())
          .run({kItems}, kGroup);
    }
    Launch(args, {kFile, "clip_factor"})
        .buffer(args.workspace)
        .buffer(args.state)
        .buffer(factor)
        .value(parts_)
        .value(static_cast<float>(largest_))
        .run({1}, {1});
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const Tensor& gradient = args.inputs[inputs_[i]];
      launch_of(args, "shrink", gradient)
          .buffer(gradient.data)
          .buffer(args.outputs[i].data)
          .buffer(factor)
          .value(gradient.shape().elements())
          .run({kItems}, kGroup);
    }
  }

 private:
  double largest_;
  std::vector<std::size_t> inputs_;
  std::int64_t parts_ = 0;
};

// Any rank: elements are counted, not placed.
std::string check_types(const Problem& problem) {
  for (const ValueId id : problem.inputs) {
    const DType dtype = problem.graph->value(id).spec.dtype;
    if (dtype != DType::f32 && dtype != DType::f16) {
      return "the kernels of OpenCL devices read f32 and f16";
    }
  }
  return {};
}

template <typename GradientKernel>
std::unique_ptr<Kernel> make(const Problem& problem, std::span<const Layout>) {
  auto kernel = std::make_unique<GradientKernel>(problem);
  set_layouts(*kernel, problem, Layout::plain());
  return kernel;
}

constexpr KernelRow kRows[] = {
    {"accumulate", match_one<OpKind::accumulate>, check_types, make<Accumulate>},
    {"clip_norm", match_one<OpKind::clip_norm>, check_types, make<ClipNorm>},
};

}  // namespace

std::span<const KernelRow> gradient_rows() { return kRows; }

}  // namespace ridgeline::opencl
