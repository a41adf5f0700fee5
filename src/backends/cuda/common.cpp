#include "backends/cuda/common.h"

namespace ridgeline::cuda {

Rows rows_of(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  if (shape.rank() == 0) return {tensor.data, 1, 1, 1};
  if (shape.rank() == 1) return {tensor.data, 1, shape[0], shape[0]};
  const std::int64_t width = shape[1];
  if (shape.rank() == 2) return {tensor.data, shape[0], width, tensor.strides[0]};
  return {tensor.data, shape[0] * shape[2] * shape[3], width, tensor.strides[3]};
}

std::string refuse_doubles(const Problem& problem) {
  for (const auto* values : {&problem.inputs, &problem.outputs}) {
    for (const ValueId id : *values) {
      const Value& value = problem.graph->value(id);
      if (value.spec.dtype == DType::f64 && value.role != Role::metric) {
        return "the GPU's kernels compute in f32, bf16 and f16, not f64";
      }
    }
  }
  return {};
}

}  // namespace ridgeline::cuda
