#include "backends/cuda/conv/image_rows.h"

#include <algorithm>

namespace ridgeline::cuda {
namespace {

// Calls visit(spec) for every value at the boundary until one answers.
template <typename Visit>
std::string first_reason(const Problem& problem, Visit visit) {
  for (const auto* values : {&problem.inputs, &problem.outputs}) {
    for (const ValueId id : *values) {
      std::string reason = visit(problem.graph->value(id).spec);
      if (!reason.empty()) return reason;
    }
  }
  return {};
}

// Numbers per channel are f32 and of rank 1; everything wider is an image or rows of features.
std::string refuse_mixtures(const Problem& problem) {
  const DType dtype = problem.input(0).dtype;
  return first_reason(problem, [&](const TensorSpec& spec) -> std::string {
    if (spec.shape.rank() > 1 && spec.dtype != dtype) {
      return "all images must have one element type";
    }
    return {};
  });
}

}  // namespace

std::string check_elements(const Problem& problem) {
  const std::string reason = first_reason(problem, [](const TensorSpec& spec) -> std::string {
    if (spec.shape.rank() == 3) return "the kernels work on rows and images, not on rank 3";
    return {};
  });
  if (!reason.empty()) return reason;
  const std::string doubles = refuse_doubles(problem);
  return doubles.empty() ? refuse_mixtures(problem) : doubles;
}

std::string check_channels(const Problem& problem) {
  const int rank = problem.input(0).shape.rank();
  if (rank != 2 && rank != 4) return "kernels with numbers per channel work on rank 2 and 4";
  return check_elements(problem);
}

Rows rows_at(std::span<const Tensor> tensors, Index index) {
  if (!index || tensors[*index].data == nullptr) return {};
  return rows_of(tensors[*index]);
}

float* floats_at(std::span<const Tensor> tensors, Index index) {
  return index ? tensors[*index].as<float>() : nullptr;
}

ActivationCode code_of(const ActivationAttributes* activation) {
  if (activation == nullptr) return {};
  return {static_cast<int>(activation->kind), static_cast<float>(activation->slope)};
}

}  // namespace ridgeline::cuda
