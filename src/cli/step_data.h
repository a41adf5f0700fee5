#pragma once

// The batch that `bench` and `verify` work on, from --data and --image.

#include <string>

#include "cli/options.h"
#include "data/dataset.h"

namespace ridgeline::cli {

class Parser;

struct StepDataOptions {
  std::string data = "synthetic";
  std::string image;  // empty: what the data has, 1x28x28 for synthetic data
  std::string normalize = "unit";
};
// --data, --image, --normalize.
void add_step_data_options(Parser& command, StepDataOptions& options);

// Fits the step to the images, checks the memory of all requests together, then gets at least
// `samples` samples; bad_input when the data has fewer.
[[nodiscard]] Dataset prepare_step(StepSpec& step, const StepDataOptions& options,
                                   const RunOptions& run, std::span<const PlanRequest> requests,
                                   std::int64_t samples, Device& device);

// For --print-plan and --explain: the plan of the training step by each request. Goes to standard
// error where standard output is for a JSON document.
void show_plans(const StepSpec& step, const RunOptions& run, std::span<const PlanRequest> requests,
                bool json, Device& device);

// The same of inference.
void show_inference_plan(const StepSpec& step, const RunOptions& run, const PlanRequest& request,
                         bool json, Device& device);

}  // namespace ridgeline::cli
