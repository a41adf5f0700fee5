#include "backends/opencl/norm_apply.h"

namespace ridgeline::opencl {

void launch_norm_apply(const KernelArgs& args, const NormApply& task) {
  const StretchRange range = stretch_range(args, task.src);
  Launch(args, {"kernels/batch_norm.cl", "norm_apply", range.options})
      .rows(task.src)
      .rows(task.other)
      .rows(task.dst)
      .buffer(task.mean)
      .buffer(task.variance)
      .buffer(task.scale)
      .buffer(task.shift)
      .value(task.src.width)
      .value(task.src.rows)
      .value(range.stretch)
      .value(task.epsilon)
      .value(task.activation.kind)
      .value(task.activation.slope)
      .run(range.items, range.group);
}

}  // namespace ridgeline::opencl
