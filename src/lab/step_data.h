#pragma once

// The batch that `bench` and `verify` work on, from --data and --image.

#include <string>

#include "data/dataset.h"
#include "lab/listener.h"
#include "lab/options.h"

namespace ridgeline {

struct StepDataOptions {
  std::string data = "synthetic";
  std::string image;  // empty: what the data has, 1x28x28 for synthetic data
  std::string normalize = "unit";
};

// Fits the step to the images, checks the memory of all requests together, then gets at least
// `samples` samples; bad_input when the data has fewer.
[[nodiscard]] Dataset prepare_step(StepSpec& step, const StepDataOptions& options,
                                   const RunOptions& run, std::span<const PlanRequest> requests,
                                   std::int64_t samples, Device& device);

// Synthetic samples that fit a model.
[[nodiscard]] Dataset synthetic_for(const ModelConfig& model, std::int64_t count,
                                    std::int64_t seed);

// For --print-plan and --explain: the plan of the training step by each request.
void show_plans(const StepSpec& step, const RunOptions& run, std::span<const PlanRequest> requests,
                CallListener& listener, Device& device);

// The same of inference.
void show_inference_plan(const StepSpec& step, const RunOptions& run, const PlanRequest& request,
                         CallListener& listener, Device& device);

}  // namespace ridgeline
