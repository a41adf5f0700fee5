#pragma once

// What the rows of kernels without windows share: checks, and operands that may be absent.

#include <optional>

#include "backends/cuda/common.h"

namespace ridgeline::cuda {

// Why kernels over elements refuse a problem: f64, several element types, rank 3.
[[nodiscard]] std::string check_elements(const Problem& problem);

// Why kernels with numbers per channel refuse it: as above, and images of other ranks than 2 and 4.
[[nodiscard]] std::string check_channels(const Problem& problem);

// Where an operand stands among a kernel's inputs or outputs; empty where it is absent.
using Index = std::optional<std::size_t>;

// Rows and numbers at a place; null where there is none, or where the output is not read.
[[nodiscard]] Rows rows_at(std::span<const Tensor> tensors, Index index);
[[nodiscard]] float* floats_at(std::span<const Tensor> tensors, Index index);

// An activation as kernels take it.
struct ActivationCode {
  int kind = kNoActivation;
  float slope = 0.0F;
};
[[nodiscard]] ActivationCode code_of(const ActivationAttributes* activation);  // null: none

}  // namespace ridgeline::cuda
