// Convolutions with as many groups as channels, one output channel each.

#include <fmt/core.h>

#include "backends/cuda/common.h"
#include "backends/cuda/depthwise/depthwise_kernels.h"
#include "backends/cuda/rows.h"
#include "plan/patterns.h"

namespace ridgeline::cuda {
namespace {

const Conv2dAttributes& attributes_of(const Problem& problem) {
  return std::get<Conv2dAttributes>(problem.node().attributes);
}

DepthwiseAxis row_axis(const Conv2dAttributes& a, std::int64_t src, std::int64_t dst) {
  return {static_cast<int>(src),        static_cast<int>(dst),
          static_cast<int>(a.kernel_h), static_cast<int>(a.stride_h),
          static_cast<int>(a.pad_top),  static_cast<int>(a.dilation_h)};
}

DepthwiseAxis column_axis(const Conv2dAttributes& a, std::int64_t src, std::int64_t dst) {
  return {static_cast<int>(src),        static_cast<int>(dst),
          static_cast<int>(a.kernel_w), static_cast<int>(a.stride_w),
          static_cast<int>(a.pad_left), static_cast<int>(a.dilation_w)};
}

// What does not change from run to run.
DepthwiseTask task_for(const Problem& problem, const TensorSpec& src, const Shape& dst) {
  const Conv2dAttributes& a = attributes_of(problem);
  DepthwiseTask task;
  task.dtype = src.dtype;
  task.samples = src.shape[0];
  task.channels = src.shape[1];
  task.rows = row_axis(a, src.shape[2], dst[2]);
  task.columns = column_axis(a, src.shape[3], dst[3]);
  return task;
}

using Launch = void (*)(const DepthwiseTask& task, Stream stream);

// The same for each kind of window.
struct Launches {
  Launch fast, walked, any;
};

void launch(const Launches& launches, const DepthwiseTask& task, Stream stream) {
  if (is_fast_depthwise(task)) return launches.fast(task, stream);
  if (is_walked_depthwise(task)) return launches.walked(task, stream);
  launches.any(task, stream);
}

class Depthwise final : public Kernel {
 public:
  explicit Depthwise(const Problem& problem)
      : task_(task_for(problem, problem.input(0), problem.output(0).shape)) {
    for (std::size_t i = 1; i < problem.nodes.size(); ++i) {
      const Node& node = problem.node(i);
      if (node.kind == OpKind::bias) {
        biased_ = true;
      } else {
        const auto& activation = std::get<ActivationAttributes>(node.attributes);
        task_.activation = static_cast<int>(activation.kind);
        task_.slope = static_cast<float>(activation.slope);
      }
    }
  }

  void run(const KernelArgs& args) const override {
    if (args.outputs[0].data == nullptr) return;
    DepthwiseTask task = task_;
    task.src = rows_of(args.inputs[0]);
    task.weights = args.inputs[1].data;
    if (biased_) task.bias = args.inputs[2].as<float>();
    task.dst = rows_of(args.outputs[0]);
    launch({launch_depthwise, launch_walked_depthwise, launch_any_depthwise}, task,
           stream_of(args));
  }

 private:
  DepthwiseTask task_;
  bool biased_ = false;
};

class DepthwiseBackwardData final : public Kernel {
 public:
  explicit DepthwiseBackwardData(const Problem& problem)
      : task_(task_for(problem, problem.output(0), problem.input(0).shape)) {}

  void run(const KernelArgs& args) const override {
    if (args.outputs[0].data == nullptr) return;
    DepthwiseTask task = task_;
    task.dst = rows_of(args.inputs[0]);
    task.weights = args.inputs[1].data;
    task.src = rows_of(args.outputs[0]);
    launch({launch_depthwise_backward_data, launch_walked_depthwise_backward_data,
            launch_any_depthwise_backward_data},
           task, stream_of(args));
  }

 private:
  DepthwiseTask task_;
};

class DepthwiseBackwardWeights final : public Kernel {
 public:
  explicit DepthwiseBackwardWeights(const Problem& problem)
      : task_(task_for(problem, problem.input(0), problem.input(1).shape)) {
    const std::int64_t weights = problem.output(0).shape.elements();
    workspace_bytes = static_cast<std::size_t>(depthwise_parts(weights) * weights) * sizeof(float);
  }

  void run(const KernelArgs& args) const override {
    if (args.outputs[0].data == nullptr) return;
    DepthwiseTask task = task_;
    task.src = rows_of(args.inputs[0]);
    task.dst = rows_of(args.inputs[1]);
    task.diff_weights = args.outputs[0].data;
    task.parts = reinterpret_cast<float*>(args.workspace);
    launch({launch_depthwise_backward_weights, launch_walked_depthwise_backward_weights,
            launch_any_depthwise_backward_weights},
           task, stream_of(args));
  }

 private:
  DepthwiseTask task_;
};

std::string refuse(const Problem& problem, const Shape& src, const Shape& dst) {
  const Conv2dAttributes& a = attributes_of(problem);
  if (a.groups != src[1] || a.groups != dst[1]) {
    return fmt::format("not depthwise: {} groups, {} channels to {}", a.groups, src[1], dst[1]);
  }
  if (a.kernel_h * a.kernel_w > 65535) return "more than 65,535 taps";
  for (const Shape& image : {src, dst}) {
    if (image.elements() >= std::int64_t{1} << 31) return "2^31 elements or more";
  }
  const DType dtype = problem.input(0).dtype;
  for (const auto* values : {&problem.inputs, &problem.outputs}) {
    for (const ValueId id : *values) {
      const TensorSpec& spec = problem.graph->value(id).spec;
      if (spec.shape.rank() == 4 && spec.dtype != dtype) {
        return fmt::format("{} and {} in one convolution", name_of(dtype), name_of(spec.dtype));
      }
      if (spec.shape.rank() == 1 && spec.dtype != DType::f32) return "a bias that is not f32";
    }
  }
  return refuse_doubles(problem);
}

std::string check_forward(const Problem& problem) {
  return refuse(problem, problem.input(0).shape, problem.output(0).shape);
}

std::string check_backward_data(const Problem& problem) {
  return refuse(problem, problem.output(0).shape, problem.input(0).shape);
}

std::string check_backward_weights(const Problem& problem) {
  return refuse(problem, problem.input(0).shape, problem.input(1).shape);
}

// Weights of one channel to a group are the same bytes in both layouts.
template <typename DepthwiseKernel>
std::unique_ptr<Kernel> make(const Problem& problem, std::span<const Layout>) {
  auto kernel = std::make_unique<DepthwiseKernel>(problem);
  set_layouts(*kernel, problem, Layout::nhwc());
  kernel->traits.slices = true;
  return kernel;
}

constexpr KernelRow kRows[] = {
    {"depthwise_epilogue", patterns::conv2d_epilogue, check_forward, make<Depthwise>},
    {"depthwise", match_one<OpKind::conv2d>, check_forward, make<Depthwise>},
    {"depthwise_backward_data", match_one<OpKind::conv2d_backward_data>, check_backward_data,
     make<DepthwiseBackwardData>},
    {"depthwise_backward_weights", match_one<OpKind::conv2d_backward_weights>,
     check_backward_weights, make<DepthwiseBackwardWeights>},
};

}  // namespace

std::span<const KernelRow> depthwise_rows() { return kRows; }

}  // namespace ridgeline::cuda
