#include "backends/opencl/sums.h"

#include <algorithm>

namespace ridgeline::opencl {

Parts parts_of(std::int64_t rows) {
  const std::int64_t count = std::clamp<std::int64_t>(rows / 32, 1, 256);
  Parts parts;
  parts.rows = (rows + count - 1) / count;
  parts.count = (rows + parts.rows - 1) / parts.rows;
  return parts;
}

std::size_t sums_bytes(std::int64_t rows, std::int64_t channels) {
  return 2 * float_bytes(parts_of(rows).count * channels);
}

void launch_finish(const KernelArgs& args, const void* parts, const void* dst, const void* copy,
                   std::int64_t channels, std::int64_t count, float factor) {
  if (dst == nullptr) std::swap(dst, copy);
  if (dst == nullptr) return;
  Launch(args, {"kernels/sums.cl", "finish_sums"})
      .buffer(parts)
      .buffer(dst)
      .buffer(copy)
      .value(channels)
      .value(count)
      .value(factor)
      .run({channels}, {64});
}

void launch_sums(const KernelArgs& args, const GradientSums& task, const std::byte* workspace) {
  const std::int64_t channels = task.diff.width;
  const Parts parts = parts_of(task.diff.rows);
  const std::byte* products = workspace + float_bytes(parts.count * channels);
  Launch(args, {"kernels/sums.cl", "partial_sums", number_option(task.diff)})
      .rows(task.diff)
      .rows(task.other)
      .rows(task.kept)
      .rows(task.stored)
      .rows(task.src)
      .buffer(task.mean)
      .buffer(task.variance)
      .buffer(workspace)
      .buffer(products)
      .value(channels)
      .value(task.diff.rows)
      .value(parts.rows)
      .value(task.activation.kind)
      .value(task.activation.slope)
      .value(task.epsilon)
      .run({channels, parts.count}, {16, 1});
  launch_finish(args, workspace, task.sums, task.sums_copy, channels, parts.count, 1.0F);
  if (task.src.data == nullptr) return;
  launch_finish(args, products, task.products, task.products_copy, channels, parts.count, 1.0F);
}

}  // namespace ridgeline::opencl
