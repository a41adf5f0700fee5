#pragma once

#include "backends/cuda/norm/channel_grid.h"

namespace ridgeline::cuda {

// diff_src = g * factor + src * slope + offset [+ plus] with g = backward(diff [+ other], kept).
struct NormBackward {
  DType dtype = DType::f32;
  int pack = 1;                 // as in the sums
  Rows diff, other, kept, src;  // other, kept: null where there is none; src: null when frozen
  // Another gradient of src; null: none. REQUIRES: src, no activation and no other.
  Rows plus;
  Rows diff_src;
  const unsigned char* mask = nullptr;  // as the sums left it; not null: kept is not read
  int activation = kNoActivation;
  float slope = 0.0F;
  // Not null: instead of kept, the normalised src is computed again. REQUIRES: src and mean.
  const float* shift = nullptr;
  const float* coefficients = nullptr;  // as the sums left them; null: found from what follows
  const float *mean = nullptr, *variance = nullptr, *scale = nullptr;
  const float *diff_scale = nullptr, *diff_shift = nullptr;
  double epsilon = 0.0;
  bool frozen = false;
};
void launch_norm_backward(const NormBackward& task, Stream stream);

}  // namespace ridgeline::cuda
