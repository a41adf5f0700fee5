#pragma once

// u8 pixels in plain order to floats in nhwc.

#include "backends/cuda/launch.h"
#include "ops/step_state.h"

namespace ridgeline::cuda {

// Channels that one launch takes; more are taken by several.
inline constexpr int kNormalizeChannels = 4;

struct NormalizeTask {
  const std::uint8_t* src = nullptr;      // at the first channel
  const std::int32_t* samples = nullptr;  // their numbers; null: nothing is mirrored
  void* dst = nullptr;                    // at the first channel
  DType dtype = DType::f32;               // of dst
  std::int64_t batch = 0, height = 0, width = 0;
  std::int64_t src_sample_stride = 0, dst_pixel_stride = 0;
  int channels = 0;
  double mean[kNormalizeChannels] = {}, deviation[kNormalizeChannels] = {};
};

void launch_normalize(const NormalizeTask& task, const StepState* state, Stream stream);

}  // namespace ridgeline::cuda
