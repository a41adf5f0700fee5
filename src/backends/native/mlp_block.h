#pragma once

// A training step of a small multilayer perceptron in one pass over its input: a block of rows goes
// forward, through the loss and backward while it is in the cache, so that memory is read once and
// nothing between the layers is ever written to it.

#include <array>
#include <cstddef>
#include <cstdint>

#include "ops/activation.h"

namespace ridgeline::native {

// Everything between the layers of a block lies in the nearest cache, hence the limits.
inline constexpr std::int64_t kMaxMlpLayers = 8, kMaxMlpWidth = 64, kMaxMlpInputs = 4096;

// dst = activation(src · weightsᵀ + bias) and where the gradients go.
struct MlpLayer {
  std::int64_t inputs = 0, outputs = 0;
  bool activate = false;
  ActivationKind activation = ActivationKind::relu;
  float slope = 0.0F;
  const float* weights = nullptr;
  const float* bias = nullptr;  // null: none
  float* diff_weights = nullptr;
  float* diff_bias = nullptr;
};

struct MlpNetwork {
  std::array<MlpLayer, kMaxMlpLayers> layers;
  std::size_t depth = 0;
};

// The rows: u8 pixels that become pixel * scale + shift, or floats as they are.
struct MlpInput {
  const std::uint8_t* pixels = nullptr;
  float scale = 1.0F, shift = 0.0F;
  const float* floats = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t rows = 0, valid = 0;  // rows from `valid` on count nothing
  const std::int32_t* labels = nullptr;
};

struct MlpLoss {
  float smoothing = 0.0F;
  float diff_scale = 0.0F;  // loss scale ÷ valid rows
  bool rank = false;        // count the rows whose label comes first, or among the first five
};

// Sums over the valid rows.
struct alignas(64) MlpSums {
  double loss = 0.0, top1 = 0.0, top5 = 0.0;
};

// Memory for run_mlp_step; the work is cut into `slots` parts, whose sums are added in order.
[[nodiscard]] std::size_t mlp_workspace_bytes(const MlpNetwork& network, int slots);

MlpSums run_mlp_step(const MlpNetwork& network, const MlpInput& input, const MlpLoss& loss,
                     int slots, std::byte* workspace);

}  // namespace ridgeline::native
