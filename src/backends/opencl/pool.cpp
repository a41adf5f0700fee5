// Pooling, and its gradient alone and with the gradient of the activation before the pool.

#include "backends/opencl/common.h"
#include "backends/opencl/rows.h"
#include "plan/patterns.h"

namespace ridgeline::opencl {
namespace {

// As in pool.cl.
struct PoolTask {
  std::int32_t kind, src_h, src_w, dst_h, dst_w;
  std::int32_t kernel_h, kernel_w, stride_h, stride_w, top, left, bottom, right, dilation_h,
      dilation_w;
  std::int32_t count_padding, wide_positions;
};

PoolTask task_of(const PoolAttributes& a, const Shape& src, const Shape& dst) {
  const auto n = [](std::int64_t number) { return static_cast<std::int32_t>(number); };
  return {static_cast<std::int32_t>(a.kind),
          n(src[2]),
          n(src[3]),
          n(dst[2]),
          n(dst[3]),
          n(a.kernel_h),
          n(a.kernel_w),
          n(a.stride_h),
          n(a.stride_w),
          n(a.pad_top),
          n(a.pad_left),
          n(a.pad_bottom),
          n(a.pad_right),
          n(a.dilation_h),
          n(a.dilation_w),
          a.count_include_pad,
          a.kernel_h * a.kernel_w > 255};
}

class Pool final : public Kernel {
 public:
  explicit Pool(const PoolTask& task) : task_(task) {}

  void run(const KernelArgs& args) const override {
    const Rows dst = rows_of(args.outputs[0]);
    const Index positions = args.outputs.size() > 1 ? Index(1) : Index();
    const LaneRange range = lane_range(args, dst);
    Launch(args, {"kernels/pool.cl", "pool", range.options})
        .rows(rows_of(args.inputs[0]))
        .rows(dst)
        .rows(rows_at(args.outputs, positions))
        .value(task_)
        .value(dst.width)
        .value(dst.rows)
        .run(range.items, range.group);
  }

 private:
  PoolTask task_;
};

struct BackwardOperands {
  std::size_t diff = 0;
  Index positions, kept;  // inputs
  ActivationCode activation;
};

class PoolBackward final : public Kernel {
 public:
  PoolBackward(const PoolTask& task, const BackwardOperands& operands)
      : task_(task), operands_(operands) {}

  void run(const KernelArgs& args) const override {
    if (args.outputs[0].data == nullptr) return;
    const Rows dst = rows_of(args.outputs[0]);
    const LaneRange range = lane_range(args, dst);
    Launch(args, {"kernels/pool.cl", "pool_backward", range.options})
        .rows(rows_of(args.inputs[operands_.diff]))
        .rows(rows_at(args.inputs, operands_.positions))
        .rows(rows_at(args.inputs, operands_.kept))
        .rows(dst)
        .value(task_)
        .value(dst.width)
        .value(dst.rows)
        .value(operands_.activation.kind)
        .value(operands_.activation.slope)
        .run(range.items, range.group);
  }

 private:
  PoolTask task_;
  BackwardOperands operands_;
};

std::unique_ptr<Kernel> finished(std::unique_ptr<Kernel> kernel, const Problem& problem) {
  set_layouts(*kernel, problem, Layout::nhwc());
  kernel->traits.slices = true;
  return kernel;
}

std::unique_ptr<Kernel> make_pool(const Problem& problem, std::span<const Layout>) {
  const auto& attributes = std::get<PoolAttributes>(problem.node().attributes);
  const PoolTask task = task_of(attributes, problem.input(0).shape, problem.output(0).shape);
  return finished(std::make_unique<Pool>(task), problem);
}

std::unique_ptr<Kernel> make_pool_backward(const Problem& problem, std::span<const Layout>) {
  const Node& pool = problem.node();
  const auto& attributes = std::get<PoolAttributes>(pool.attributes);
  BackwardOperands operands;
  operands.diff = problem.input_index(pool.inputs[0]);
  if (attributes.kind == PoolKind::max) operands.positions = problem.input_index(pool.inputs[1]);
  if (problem.nodes.size() > 1) {
    operands.kept = problem.input_index(problem.node(1).inputs[1]);
    operands.activation = code_of(&std::get<ActivationAttributes>(problem.node(1).attributes));
  }
  const Shape& dst = problem.input(operands.diff).shape;
  const PoolTask task = task_of(attributes, problem.output(0).shape, dst);
  return finished(std::make_unique<PoolBackward>(task, operands), problem);
}

constexpr KernelRow kRows[] = {
    {"pool", match_one<OpKind::pool>, check_channels, make_pool},
    {"pool_act_backward", patterns::pool_act_backward, check_channels, make_pool_backward},
    {"pool_backward", match_one<OpKind::pool_backward>, check_channels, make_pool_backward},
};

}  // namespace

std::span<const KernelRow> pool_rows() { return kRows; }

}  // namespace ridgeline::opencl
