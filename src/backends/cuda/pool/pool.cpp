// Pooling, and its gradient alone and as pool_backward + activation_backward [+ bias_backward],
// which in a network of convolution, bias, activation and pool makes one pass of three.

#include <fmt/core.h>

#include <optional>

#include "backends/cuda/common.h"
#include "backends/cuda/pool/pool_kernels.h"
#include "backends/cuda/pool/window_sums_kernels.h"
#include "backends/cuda/rows.h"
#include "plan/patterns.h"

namespace ridgeline::cuda {
namespace {

PoolAxis row_axis(const PoolAttributes& a, std::int64_t src, std::int64_t dst) {
  return {static_cast<int>(src),         static_cast<int>(dst),
          static_cast<int>(a.kernel_h),  static_cast<int>(a.stride_h),
          static_cast<int>(a.pad_top),   static_cast<int>(a.pad_bottom),
          static_cast<int>(a.dilation_h)};
}

PoolAxis column_axis(const PoolAttributes& a, std::int64_t src, std::int64_t dst) {
  return {static_cast<int>(src),         static_cast<int>(dst),
          static_cast<int>(a.kernel_w),  static_cast<int>(a.stride_w),
          static_cast<int>(a.pad_left),  static_cast<int>(a.pad_right),
          static_cast<int>(a.dilation_w)};
}

// What does not change from run to run.
PoolTask task_for(const PoolAttributes& a, const TensorSpec& src, const Shape& dst) {
  PoolTask task;
  task.is_max = a.kind == PoolKind::max;
  task.count_padding = a.count_include_pad;
  task.rows = row_axis(a, src.shape[2], dst[2]);
  task.columns = column_axis(a, src.shape[3], dst[3]);
  task.samples = src.shape[0];
  task.channels = src.shape[1];
  task.dtype = src.dtype;
  return task;
}

void set_positions(PoolTask& task, const Tensor& positions) {
  if (positions.data == nullptr) return;
  task.positions = rows_of(positions);
  task.position_type = positions.spec.dtype;
}

class Pool final : public Kernel {
 public:
  explicit Pool(const PoolTask& task) : task_(task) {
    workspace_bytes = pool_workspace_bytes(task);
  }

  void run(const KernelArgs& args) const override {
    PoolTask task = task_;
    task.src = rows_of(args.inputs[0]);
    task.dst = rows_of(args.outputs[0]);
    task.parts = reinterpret_cast<float*>(args.workspace);
    if (task.is_max) set_positions(task, args.outputs[1]);
    launch_pool(task, stream_of(args));
  }

 private:
  PoolTask task_;
};

// Where the operands stand among the kernel's arguments; diff_src is output 0.
struct BackwardOperands {
  std::size_t diff_dst = 0;
  std::optional<std::size_t> positions, kept;  // inputs
  std::optional<std::size_t> diff_bias;        // output
};

class PoolBackward final : public Kernel {
 public:
  PoolBackward(const PoolTask& task, const BackwardOperands& operands)
      : task_(task), operands_(operands) {
    if (!operands.diff_bias) return;
    workspace_bytes = static_cast<std::size_t>(kPoolParts * task.channels) * sizeof(float);
  }

  void run(const KernelArgs& args) const override {
    if (args.outputs[0].data == nullptr) return;
    PoolTask task = task_;
    task.diff_dst = rows_of(args.inputs[operands_.diff_dst]);
    task.diff_src = rows_of(args.outputs[0]);
    if (operands_.positions) set_positions(task, args.inputs[*operands_.positions]);
    if (operands_.kept) task.kept = rows_of(args.inputs[*operands_.kept]);
    if (operands_.diff_bias) {
      task.diff_bias = args.outputs[*operands_.diff_bias].as<float>();
      task.parts = reinterpret_cast<float*>(args.workspace);
    }
    launch_pool_backward(task, stream_of(args));
  }

 private:
  PoolTask task_;
  BackwardOperands operands_;
};

// Averages of windows that follow from both images' sizes, and their gradient.
class AdaptivePool final : public Kernel {
 public:
  explicit AdaptivePool(WindowRule rule) : rule_(rule) {}

  void run(const KernelArgs& args) const override {
    const Shape &from = args.inputs[0].shape(), &to = args.outputs[0].shape();
    WindowSums task;
    task.rule = rule_;
    task.dtype = args.inputs[0].spec.dtype;
    task.src_h = from[2], task.src_w = from[3];
    task.dst_h = to[2], task.dst_w = to[3];
    task.src = rows_of(args.inputs[0]);
    task.dst = rows_of(args.outputs[0]);
    launch_window_sums(task, stream_of(args));
  }

 private:
  WindowRule rule_;
};

bool is_adaptive(const Problem& problem) {
  const auto& attributes = std::get<PoolAttributes>(problem.node().attributes);
  return attributes.kind == PoolKind::adaptive_average;
}

// Pixels and packs of channels are counted in 31 bits.
std::string check_images(const Problem& problem) {
  const DType dtype = problem.input(0).dtype;
  for (const auto* values : {&problem.inputs, &problem.outputs}) {
    for (const ValueId id : *values) {
      const TensorSpec& spec = problem.graph->value(id).spec;
      if (spec.shape.elements() >= std::int64_t{1} << 31) return "2^31 elements or more";
      if (is_float(spec.dtype) && spec.shape.rank() == 4 && spec.dtype != dtype) {
        return fmt::format("images of {} and {} in one pool", name_of(dtype), name_of(spec.dtype));
      }
    }
  }
  return refuse_doubles(problem);
}

std::string check_pool(const Problem& problem) {
  return is_adaptive(problem) ? "windows of different sizes" : check_images(problem);
}

std::string check_adaptive(const Problem& problem) {
  return is_adaptive(problem) ? check_images(problem) : "windows of one size";
}

template <WindowRule kRule>
std::unique_ptr<Kernel> make_adaptive(const Problem& problem, std::span<const Layout>) {
  auto kernel = std::make_unique<AdaptivePool>(kRule);
  set_layouts(*kernel, problem, Layout::nhwc());
  kernel->traits.slices = true;
  return kernel;
}

std::unique_ptr<Kernel> make_pool(const Problem& problem, std::span<const Layout>) {
  const auto& attributes = std::get<PoolAttributes>(problem.node().attributes);
  auto kernel =
      std::make_unique<Pool>(task_for(attributes, problem.input(0), problem.output(0).shape));
  set_layouts(*kernel, problem, Layout::nhwc());
  kernel->traits.slices = true;
  return kernel;
}

std::unique_ptr<Kernel> make_pool_backward(const Problem& problem, std::span<const Layout>) {
  const Node& pool = problem.node();
  const auto& attributes = std::get<PoolAttributes>(pool.attributes);
  BackwardOperands operands;
  operands.diff_dst = problem.input_index(pool.inputs[0]);
  if (attributes.kind == PoolKind::max) operands.positions = problem.input_index(pool.inputs[1]);
  PoolTask task = task_for(attributes, problem.output(0), problem.input(operands.diff_dst).shape);
  for (std::size_t i = 1; i < problem.nodes.size(); ++i) {
    const Node& node = problem.node(i);
    if (node.kind == OpKind::activation_backward) {
      const auto& activation = std::get<ActivationAttributes>(node.attributes);
      task.activation = static_cast<int>(activation.kind);
      task.slope = static_cast<float>(activation.slope);
      operands.kept = problem.input_index(node.inputs[1]);
    } else {
      operands.diff_bias = problem.output_index(node.outputs[0]);
    }
  }
  auto kernel = std::make_unique<PoolBackward>(task, operands);
  set_layouts(*kernel, problem, Layout::nhwc());
  kernel->traits.slices = true;
  return kernel;
}

constexpr KernelRow kRows[] = {
    {"pool", match_one<OpKind::pool>, check_pool, make_pool},
    {"adaptive_pool", match_one<OpKind::pool>, check_adaptive, make_adaptive<WindowRule::average>},
    {"pool_act_backward_bias", patterns::pool_act_backward_bias, check_pool, make_pool_backward},
    {"pool_act_backward", patterns::pool_act_backward, check_pool, make_pool_backward},
    {"pool_backward", match_one<OpKind::pool_backward>, check_pool, make_pool_backward},
    {"adaptive_pool_backward", match_one<OpKind::pool_backward>, check_adaptive,
     make_adaptive<WindowRule::average_backward>},
};

}  // namespace

std::span<const KernelRow> pool_rows() { return kRows; }

}  // namespace ridgeline::cuda
