#include "backends/opencl/norm_apply.h"

namespace ridgeline::opencl {

void launch_norm_apply(const KernelArgs& args, const NormApply& task) {
  const std::int64_t width = task.src.width, rows = task.src.rows;
  Launch(args, {"kernels/batch_norm.cl", "norm_apply", number_option(task.src)})
      .rows(task.src)
      .rows(task.other)
      .rows(task.dst)
      .buffer(task.mean)
      .buffer(task.variance)
      .buffer(task.scale)
      .buffer(task.shift)
      .value(width)
      .value(rows)
      .value(task.epsilon)
      .value(task.activation.kind)
      .value(task.activation.slope)
      .run({width, rows}, width >= 64 ? Size{64, 1} : Size{8, 8});
}

}  // namespace ridgeline::opencl
