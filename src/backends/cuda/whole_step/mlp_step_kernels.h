#pragma once

// The training step of a perceptron with one hidden layer: src -> hidden -> logits -> loss, and the
// gradients of both layers.

#include <cstdint>

#include "backends/cuda/launch.h"
#include "backends/cuda/sums/partial_sums.h"

namespace ridgeline::cuda {

inline constexpr int kMaxMlpInputs = 4096, kMaxMlpHidden = 64, kMaxMlpClasses = 32;

struct MlpStep {
  // One of the two: pixels, which become pixel * scale + shift, or floats. Dense rows.
  const std::uint8_t* pixels = nullptr;
  const float* floats = nullptr;
  float scale = 1.0F, shift = 0.0F;
  std::int64_t rows = 0;
  const std::int32_t* labels = nullptr;
  const StepState* state = nullptr;

  int inputs = 0, hidden = 0, classes = 0;
  int activation = kNoActivation;
  float slope = 0.0F;
  float smoothing = 0.0F;
  double diff_weight = 1.0;         // of the loss's gradient: of a part of a batch its share
  const float* weights1 = nullptr;  // hidden x inputs
  const float* bias1 = nullptr;
  const float* weights2 = nullptr;  // classes x hidden
  const float* bias2 = nullptr;

  // Workspace. The small gradients of a block: weights2, bias2, bias1 and the loss's sums.
  float* small_partials = nullptr;   // [forward blocks][small_stride]
  float* weight_partials = nullptr;  // [slices][hidden x inputs], of weights1
  float* diff_hidden = nullptr;      // [rows][hidden], only of the general way
};

[[nodiscard]] constexpr int small_gradients(const MlpStep& step) {
  return step.classes * step.hidden + step.classes + step.hidden;
}
[[nodiscard]] constexpr int small_stride(const MlpStep& step) {
  return (small_gradients(step) + kLossSums + 15) / 16 * 16;
}

// How the general way is cut: two kernels on CUDA cores, any sizes within the limits.
struct MlpGeneralPlan {
  int forward_blocks = 0;
  int slices = 0;                  // of the rows, in the gradient of weights1
  std::int64_t rows_of_slice = 0;  // a multiple of 16
};
[[nodiscard]] MlpGeneralPlan plan_mlp_general(const MlpStep& step, int multiprocessors);
void launch_mlp_general(const MlpStep& step, const MlpGeneralPlan& plan, Stream stream);

// How pixels are read once, by tensor cores: bytes are exact in f16, and two f16 numbers make one
// of f32.
inline constexpr int kMaxPixelHidden = 10, kMaxPixelInputs = 896;
struct MlpPixelPlan {
  int blocks = 0;  // 0: this way is not for this problem or device
  int stages = 0;  // tiles in shared memory
  int shared_bytes = 0;
};
[[nodiscard]] MlpPixelPlan plan_mlp_pixels(const MlpStep& step, const DeviceLimits& device);
void launch_mlp_pixels(const MlpStep& step, const MlpPixelPlan& plan, Stream stream);

// Adds what the blocks left behind.
void launch_mlp_sums(const PartialSums& weights, const PartialSums& small, const LossTotals& loss,
                     Stream stream);

}  // namespace ridgeline::cuda
