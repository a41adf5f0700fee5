#pragma once

// Inference of the engine, measured: batch norms folded into the weights, the batch on the device,
// from its pixels to the logits.

#include <memory>

#include "data/dataset.h"
#include "measure/iterations/measured_step.h"
#include "train/inference_runner.h"

namespace ridgeline {

struct InferenceStepConfig {
  Work work;
  Executor executor;
  StepSpec step;
  PlanRequest request;
  std::shared_ptr<Device> device;
  std::shared_ptr<const Dataset> data;  // in memory, at least a batch
  std::uint64_t seed = 0;
};

// Plans without allocating anything. Throws bad_input where there can be no plan.
[[nodiscard]] std::unique_ptr<MeasuredStep> make_inference_step(InferenceStepConfig config);

}  // namespace ridgeline
