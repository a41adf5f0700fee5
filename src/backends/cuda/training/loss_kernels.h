#pragma once

// Softmax cross-entropy with its gradient and the metrics of the same logits.

#include "backends/cuda/launch.h"
#include "ops/step_state.h"

namespace ridgeline::cuda {

// Rows of classes; null data: left out.
struct LossMatrix {
  void* data = nullptr;
  std::int64_t stride = 0;
  DType dtype = DType::f32;
};

struct LossTask {
  LossMatrix logits, probabilities;
  LossMatrix diff_logits, cast_diff_logits;  // the same numbers, as computed and in another type
  const std::int32_t* labels = nullptr;
  std::int64_t rows = 0, classes = 0;
  double smoothing = 0.0;
  double weight = 1.0;       // of the loss
  double diff_weight = 1.0;  // of its gradient: of a part of a batch its share

  // What the rows add up to; null: left out.
  float* loss = nullptr;
  const double* totals = nullptr;  // metrics: four numbers, before and after
  double* new_totals = nullptr;
  const float* given_loss = nullptr;  // what the metrics count instead of the loss computed here
};

// Bytes of workspace that launch_loss needs.
[[nodiscard]] std::int64_t loss_workspace_bytes();

// Reads logits; writes probabilities, gradients, the loss and the totals.
void launch_loss(const LossTask& task, const StepState* state, void* workspace, Stream stream);

// Reads probabilities; writes the gradients.
void launch_loss_backward(const LossTask& task, const StepState* state, Stream stream);

}  // namespace ridgeline::cuda
