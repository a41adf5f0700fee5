#pragma once

#include "backends/cuda/norm/channel_grid.h"

namespace ridgeline::cuda {

// What flows back into a layer, g = backward(diff [+ other], kept), and its sums over the rows: the
// gradient of a bias, or the two of a normalisation.
struct GradientSums {
  DType dtype = DType::f32;
  int pack = 1;            // the elements of a pack, from word_pack_for and all operands
  Rows diff, other, kept;  // other, kept: null where nothing is added, without an activation
  Rows stored;             // where g goes; null: nowhere
  Rows src;                // what was normalised; null: only g itself is added up
  int activation = kNoActivation;
  float slope = 0.0F;
  // A byte for each pack: a bit for each element, whether it passed the activation. Null: none;
  // only where has_mask says so.
  unsigned char* mask = nullptr;
  // Null mean and variance: src is taken as it is.
  const float *mean = nullptr, *variance = nullptr, *scale = nullptr;
  // Not null: instead of kept, the normalised src is computed again. REQUIRES: mean, variance and
  // scale.
  const float* shift = nullptr;
  double epsilon = 0.0;
  float* sums = nullptr;      // of g; null where they are not read
  float* products = nullptr;  // of g times the normalised src; likewise
  // What launch_norm_backward needs, three numbers a channel; null: nothing follows.
  float* coefficients = nullptr;
  bool frozen = false;
  void* workspace = nullptr;
  unsigned* counters = nullptr;
};

// Whether a mask can stand for the activation's result in the gradient.
[[nodiscard]] bool has_mask(int activation, int pack);

[[nodiscard]] SumScratch gradient_sums_scratch(DType dtype, std::int64_t rows,
                                               std::int64_t channels, bool normalisation);
void launch_gradient_sums(const GradientSums& task, Stream stream);

// The same from sums that a kernel left behind, of g and of g times src's distance from the mean:
// [parts][2][channels]. Of src only rows and width are read. REQUIRES: a mean.
void launch_merge_gradient_sums(const GradientSums& task, const float* sums, int parts,
                                Stream stream);

}  // namespace ridgeline::cuda
