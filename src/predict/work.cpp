#include "predict/work.h"

#include <algorithm>

#include "backends/auto.h"
#include "base/error.h"
#include "inspect/complexity.h"
#include "lab/options.h"
#include "measure/step_times.h"
#include "predict/dry_exchange.h"
#include "predict/dry_gpu.h"

namespace ridgeline::predict {
namespace {

// Throws bad_input where this machine cannot plan it.
Plan cpu_plan(const Work& work, Device& cpu) {
  if (const std::string refusal = cpu.refuse(work.step.precision); !refusal.empty()) {
    bad_input("cannot plan {} for CPUs here: {}", name_of(work.step.precision), refusal);
  }
  PlanRequest request;
  request.backend = own_backend("cpu");
  request.disabled_passes = work.disabled_passes;
  if (work.step.divide.ranks > 1) {
    PlanOptions options;
    options.providers = providers_of(request.backend);
    options.providers.push_back(&dry_exchange_backend);
    options.disabled_passes = work.disabled_passes;
    options.measure = false;
    return make_plan(training_graph(work.step).graph, options);
  }
  if (!work.inference) return dry_plan(work.step, request, cpu);
  request.constant_weights = true;
  request.measure = false;
  return plan_for(inference_graph(work.step).graph, request, cpu);
}

Plan plan_of(const Work& work, Family family, Device& cpu) {
  return family == Family::gpu ? dry_gpu_plan(work.step, work.inference) : cpu_plan(work, cpu);
}

// What travels, 16-bit gradients as f32, in which sums are made; 0: the step computes.
double exchanged_bytes(const Plan& plan, const Step& step) {
  if (step.is_reorder() || plan.graph->node(step.nodes[0]).kind != OpKind::all_reduce) return 0.0;
  double bytes = 0.0;
  for (const FormId output : step.outputs) {
    if (output == kNoForm) continue;
    const TensorSpec& spec = plan.graph->value(plan.form(output).value).spec;
    const std::size_t each = std::max(size_of(spec.dtype), sizeof(float));
    bytes += static_cast<double>(spec.shape.elements()) * static_cast<double>(each);
  }
  return bytes;
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

DividedWork divided(const Work& work, Family family, int ranks) {
  const std::int64_t batch = work.step.batch;
  Work part = work;
  part.step.divide = {
      .part = {.rows = batch, .pass_rows = batch * ranks, .batch_rows = batch * ranks},
      .ranks = ranks};
  const std::unique_ptr<Device> cpu = make_cpu_device();
  const Plan plan = plan_of(part, family, *cpu);
  const std::vector<double> none(plan.steps.size(), 0.0);
  DividedWork made;
  made.steps = step_times(plan, *cpu, none);
  for (const Step& step : plan.steps) {
    made.needed_by.push_back(step.needed_by);
    made.exchanged_bytes.push_back(exchanged_bytes(plan, step));
  }
  return made;
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
