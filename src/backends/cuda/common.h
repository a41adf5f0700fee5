#pragma once

// What the rows of the cuda and cudnn backends share.

#include <string>

#include "backends/cuda/launch.h"
#include "plan/kernel.h"

namespace ridgeline::cuda {

[[nodiscard]] inline Stream stream_of(const KernelArgs& args) {
  return static_cast<Stream>(args.queue);
}

// The tensor as rows of channels: REQUIRES nhwc for rank 4. Rank 1 is one row.
[[nodiscard]] Rows rows_of(const Tensor& tensor);

// Why a problem with a value of type f64 is refused (metrics' totals apart); empty when none is.
// f32, bf16 and f16 are computed, whatever the mixture the ops' shape rules allow.
[[nodiscard]] std::string refuse_doubles(const Problem& problem);

}  // namespace ridgeline::cuda
