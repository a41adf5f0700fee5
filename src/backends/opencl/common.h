#pragma once

// What the rows of the opencl backend share.

#include <initializer_list>
#include <optional>
#include <string>

#include "backends/opencl/launch.h"
#include "plan/kernel.h"

namespace ridgeline::opencl {

// The tensor as rows of channels: REQUIRES nhwc for rank 4. Rank 1 is one row.
[[nodiscard]] Rows rows_of(const Tensor& tensor);

// Where an operand stands among a kernel's inputs or outputs; empty where it is absent.
using Index = std::optional<std::size_t>;
// Rows and addresses at a place; null where there is none, or where the output is not read.
[[nodiscard]] Rows rows_at(std::span<const Tensor> tensors, Index index);
[[nodiscard]] const void* data_at(std::span<const Tensor> tensors, Index index);

// An activation as kernels take it: the ActivationKind's number, -1 for none.
struct ActivationCode {
  std::int32_t kind = -1;
  float slope = 0.0F;
};
[[nodiscard]] ActivationCode code_of(const ActivationAttributes* activation);  // null: none

// The range of work-items over elements of rows that all have one shape: x counts channels, y rows.
// Where no operand has gaps, everything is one row.
struct ElementRange {
  Size items, group;
  std::int64_t rows = 0, width = 0;
};
[[nodiscard]] ElementRange element_range(std::initializer_list<const Rows*> operands);

// Blocks of channels for kernels in lanes (lanes.cl): `lanes` channels to a work-item.
struct LaneRange {
  Size items, group;
  std::string options;  // of the kernel's build
};
[[nodiscard]] LaneRange lane_range(const KernelArgs& args, const Rows& rows);
// The same for kernels that may work in place: `lanes` divides the channels, and a work-item takes
// `stretch` rows.
struct StretchRange {
  Size items, group;
  std::int64_t stretch = 1;
  std::string options;
};
[[nodiscard]] StretchRange stretch_range(const KernelArgs& args, const Rows& rows);

// Why a problem is refused: a value that is neither f32 nor f16 (integers and metrics' totals
// apart), rank 3, or a tensor of more elements than an int counts.
[[nodiscard]] std::string check_elements(const Problem& problem);
// The same for kernels with numbers per channel, which work on rank 2 and 4.
[[nodiscard]] std::string check_channels(const Problem& problem);

}  // namespace ridgeline::opencl
