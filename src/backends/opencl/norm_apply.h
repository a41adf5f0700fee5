#pragma once

#include "backends/opencl/common.h"

namespace ridgeline::opencl {

// dst = activation((src - mean) / deviation * scale + shift + other); all but src and dst may be
// absent.
struct NormApply {
  Rows src, other, dst;
  const void *mean = nullptr, *variance = nullptr, *scale = nullptr, *shift = nullptr;
  float epsilon = 0.0F;
  ActivationCode activation = {};
};
void launch_norm_apply(const KernelArgs& args, const NormApply& task);

}  // namespace ridgeline::opencl
