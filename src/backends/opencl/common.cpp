#include "backends/opencl/common.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

namespace ridgeline::opencl {

Rows rows_of(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  const bool half = tensor.spec.dtype == DType::f16;
  if (shape.rank() == 0) return {tensor.data, 1, 1, 1, half};
  if (shape.rank() == 1) return {tensor.data, 1, shape[0], shape[0], half};
  const std::int64_t width = shape[1];
  if (shape.rank() == 2) return {tensor.data, shape[0], width, tensor.strides[0], half};
  return {tensor.data, shape[0] * shape[2] * shape[3], width, tensor.strides[3], half};
}

Rows rows_at(std::span<const Tensor> tensors, Index index) {
  if (!index || tensors[*index].data == nullptr) return {};
  return rows_of(tensors[*index]);
}

const void* data_at(std::span<const Tensor> tensors, Index index) {
  return index ? tensors[*index].data : nullptr;
}

ActivationCode code_of(const ActivationAttributes* activation) {
  if (activation == nullptr) return {};
  return {static_cast<std::int32_t>(activation->kind), static_cast<float>(activation->slope)};
}

ElementRange element_range(std::initializer_list<const Rows*> operands) {
  ElementRange range;
  bool dense = true;
  for (const Rows* operand : operands) {
    if (operand->data == nullptr) continue;
    range.rows = operand->rows;
    range.width = operand->width;
    dense = dense && operand->stride == operand->width;
  }
  if (dense) range = {{}, {}, 1, range.rows * range.width};
  range.items = {range.width, range.rows};
  range.group = range.width >= 64 ? Size{64, 1} : Size{8, 8};
  return range;
}

LaneRange lane_range(const KernelArgs& args, const Rows& rows) {
  std::int64_t lanes = 1;
  const bool cpu = queue_of(args).context().properties().cpu;
  if (cpu) {
    lanes = 16;
    while (lanes > rows.width) lanes /= 2;
    if (lanes == 2) lanes = 1;
  }
  LaneRange range;
  range.items = {(rows.width + lanes - 1) / lanes, rows.rows};
  // Work-items of a CPU run one after the other: few to a group, that all cores get some.
  range.group = cpu ? Size{1, 16} : rows.width >= 64 ? Size{64, 1} : Size{8, 8};
  range.options = fmt::format("-DLANES={} {}", lanes, number_option(rows));
  return range;
}

StretchRange stretch_range(const KernelArgs& args, const Rows& rows) {
  constexpr std::int64_t kStretchesPerUnit = 16;
  const Properties& properties = queue_of(args).context().properties();
  std::int64_t lanes = 1;
  if (properties.cpu) {
    lanes = 16;
    while (lanes > 1 && rows.width % lanes != 0) lanes = lanes > 4 ? lanes / 2 : 1;
  }
  StretchRange range;
  range.group = rows.width >= 64 ? Size{64, 1} : Size{8, 8};
  if (lanes > 1) {
    const std::int64_t stretches = kStretchesPerUnit * properties.compute_units;
    range.stretch = (rows.rows + stretches - 1) / stretches;
    range.group = {1, 1};
  }
  range.items = {rows.width / lanes, (rows.rows + range.stretch - 1) / range.stretch};
  range.options = fmt::format("-DLANES={} {}", lanes, number_option(rows));
  return range;
}

std::string check_elements(const Problem& problem) {
  for (const auto* values : {&problem.inputs, &problem.outputs}) {
    for (const ValueId id : *values) {
      const Value& value = problem.graph->value(id);
      const DType dtype = value.spec.dtype;
      if (is_float(dtype) && dtype != DType::f32 && dtype != DType::f16 &&
          value.role != Role::metric) {
        return "the kernels of OpenCL devices read and write f32 and f16";
      }
      if (value.spec.shape.rank() == 3) return "the kernels work on rows and images, not on rank 3";
      if (value.spec.shape.elements() > std::numeric_limits<std::int32_t>::max()) {
        return "the kernels count elements in 32 bits";
      }
    }
  }
  return {};
}

std::string check_channels(const Problem& problem) {
  const int rank = problem.input(0).shape.rank();
  if (rank != 2 && rank != 4) return "kernels with numbers per channel work on rank 2 and 4";
  return check_elements(problem);
}

}  // namespace ridgeline::opencl
