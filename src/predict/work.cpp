#include "predict/work.h"

#include <algorithm>

#include "backends/auto.h"
#include "base/error.h"
#include "inspect/complexity.h"
#include "lab/options.h"
#include "measure/step_times.h"
#include "predict/dry_gpu.h"

namespace ridgeline::predict {
namespace {

Plan cpu_plan(const Work& work, Device& cpu) {
  if (const std::string refusal = cpu.refuse(work.step.precision); !refusal.empty()) {
    bad_input("cannot plan {} for CPUs here: {}", name_of(work.step.precision), refusal);
  }
  PlanRequest request;
  request.backend = own_backend("cpu");
  if (!work.inference) return dry_plan(work.step, request, cpu);
  request.constant_weights = true;
  request.measure = false;
  return plan_for(inference_graph(work.step).graph, request, cpu);
}

Plan plan_of(const Work& work, Family family, Device& cpu) {
  return family == Family::gpu ? dry_gpu_plan(work.step, work.inference) : cpu_plan(work, cpu);
}

std::int64_t memory_of(const Plan& plan, std::int64_t batch) {
  return batch_complexity(plan, batch).peak;
}

}  // namespace

std::string_view name_of(Family family) { return family == Family::gpu ? "gpu" : "cpu"; }

PlannedWork planned(const Work& work, Family family) {
  const std::unique_ptr<Device> cpu = make_cpu_device();
  const Plan plan = plan_of(work, family, *cpu);
  const std::vector<double> none(plan.steps.size(), 0.0);
  return {step_times(plan, *cpu, none), memory_of(plan, work.step.batch)};
}

std::int64_t largest_batch_within(const Work& work, Family family, std::int64_t bytes) {
  const std::unique_ptr<Device> cpu = make_cpu_device();
  return largest_batch(
             [&](std::int64_t batch) {
               Work sized = work;
               sized.step.batch = batch;
               return plan_of(sized, family, *cpu);
             },
             bytes, {work.step.batch, memory_of(plan_of(work, family, *cpu), work.step.batch)})
      .batch;
}

Work work_of_run(const ridgeline::Work& stored) {
  if (!stored.model_hash.empty()) {
    bad_input("the network of {} comes from a file that the store does not hold", stored.model);
  }
  Work work;
  work.inference = stored.kind != "training";
  StepSpec& step = work.step;
  step.model = default_config(stored.model);
  step.model.channels = stored.image.channels;
  step.model.height = stored.image.height;
  step.model.width = stored.image.width;
  step.model.classes = stored.classes;
  for (const auto& [name, value] : stored.settings) step.model.options[name] = value;
  step.batch = stored.batch;
  step.freeze = stored.freeze;
  static constexpr std::array<Precision, 4> kAll = {Precision::fp32, Precision::tf32,
                                                    Precision::bf16, Precision::fp16};
  for (const Precision precision : kAll) {
    if (name_of(precision) == stored.precision) step.precision = precision;
  }
  OptimizerOptions optimizer;
  if (!stored.optimizer.empty()) optimizer.name = stored.optimizer;
  if (optimizer.name == "sgd") optimizer.momentum = stored.momentum;
  step.optimizer = optimizer_attributes(optimizer);
  return work;
}

}  // namespace ridgeline::predict
