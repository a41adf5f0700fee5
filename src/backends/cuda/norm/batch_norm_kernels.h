#pragma once

#include "backends/cuda/norm/channel_grid.h"
#include "ops/step_state.h"

namespace ridgeline::cuda {

// Mean and biased variance of each channel.
struct NormStatistics {
  DType dtype = DType::f32;
  Rows src;
  float *mean = nullptr, *variance = nullptr;  // null where they are not read
  // The running statistics, where they are to be updated as well.
  const float *running_mean = nullptr, *running_variance = nullptr;
  float *new_mean = nullptr, *new_variance = nullptr;
  double momentum = 0.0;
  double unbias = 1.0;  // count / (count - 1)
  const StepState* state = nullptr;
  void* workspace = nullptr;
  unsigned* counters = nullptr;
};

[[nodiscard]] SumScratch statistics_scratch(DType dtype, std::int64_t rows, std::int64_t channels);
void launch_statistics(const NormStatistics& task, Stream stream);

// The same of parts of the rows, whose moments a kernel left behind: for each part the numbers of
// rows of its channels, then their means, then their summed squared distances from these. A part
// may have no rows.
struct PartMoments {
  const float* data = nullptr;
  int parts = 0, channels = 0;
};
inline constexpr int kMomentPlanes = 3;
[[nodiscard]] inline std::size_t moments_bytes(int parts, std::int64_t channels) {
  return sizeof(float) * kMomentPlanes * static_cast<std::size_t>(parts * channels);
}
// Needs no src and no scratch memory.
void launch_merge_moments(const NormStatistics& task, const PartMoments& moments, Stream stream);

// The update of one layer's running statistics.
struct RunningUpdate {
  const float *running_mean = nullptr, *running_variance = nullptr;
  const float *mean = nullptr, *variance = nullptr;
  float *new_mean = nullptr, *new_variance = nullptr;
  double momentum = 0.0, unbias = 1.0;
  std::int64_t channels = 0;
};

inline constexpr int kMostUpdates = 54;  // their pointers travel as a kernel's arguments

// REQUIRES: at most kMostUpdates.
void launch_running_updates(const RunningUpdate* updates, int count, const StepState* state,
                            Stream stream);

// dst = activation((src - mean) * scale / deviation + shift [+ other]). Null numbers change
// nothing: a bias is a shift alone, a layer scale a scale.
struct NormApply {
  DType dtype = DType::f32;
  Rows src, other, dst;  // other: null where nothing is added
  const float *mean = nullptr, *variance = nullptr, *scale = nullptr, *shift = nullptr;
  float epsilon = 0.0F;
  int activation = kNoActivation;
  float slope = 0.0F;
};
void launch_norm_apply(const NormApply& task, Stream stream);

}  // namespace ridgeline::cuda
