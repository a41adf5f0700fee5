#include "lab/describe.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "devices/device.h"

namespace ridgeline {
namespace {

std::string optimizer_name(const OptimizerOptions& options) {
  std::string text = options.name;
  if (momentum_of(options) > 0.0) text += fmt::format(" with momentum {}", momentum_of(options));
  if (options.nesterov) text += " (nesterov)";
  return text;
}

// A step that is only planned, with all that it takes to plan it.
struct DryStep {
  explicit DryStep(const DescribeRequest& request) {
    RunOptions run = request.run;
    run.batch = request.batches.front();
    apply(run);
    step.model = model_config(run);
    set_image(step.model, request.image);
    step.batch = run.batch;
    step.freeze = run.freeze;
    step.recompute = run.recompute;
    step.optimizer = optimizer_attributes(request.optimizer);
    plan = plan_request(run, run.backend);
    device = make_device(run.device);
    step.precision = precision_of(run, *device);
  }

  StepSpec step;
  PlanRequest plan;
  std::unique_ptr<Device> device;
};

std::int64_t free_bytes(const Device& device) {
  return static_cast<std::int64_t>(
      std::min<std::size_t>(device.available_memory(), std::numeric_limits<std::int64_t>::max()));
}

}  // namespace

Description describe_step(const DescribeRequest& request) {
  DryStep dry(request);
  Description description;
  description.model = dry.step.model;
  description.backend = dry.plan.backend;
  description.device = dry.device->name();
  description.precision = request.run.precision;
  description.optimizer = optimizer_name(request.optimizer);
  for (const std::int64_t batch : request.batches) {
    dry.step.batch = batch;
    auto plan = std::make_shared<const Plan>(dry_plan(dry.step, dry.plan, *dry.device));
    description.batches.push_back(batch_complexity(*plan, batch));
    if (!description.plan) description.plan = std::move(plan);
  }
  description.layers = layers_of(*description.plan);
  for (const LayerComplexity& layer : description.layers) {
    description.parameters += layer.parameters;
  }
  description.limit_is_machines = !request.memory_limit;
  description.memory_limit = request.memory_limit ? *request.memory_limit : free_bytes(*dry.device);
  description.largest = largest_batch(dry.step, dry.plan, *dry.device, description.memory_limit,
                                      description.batches.back());
  return description;
}

Plan plan_step(const DescribeRequest& request) {
  DryStep dry(request);
  return dry_plan(dry.step, dry.plan, *dry.device);
}

}  // namespace ridgeline
