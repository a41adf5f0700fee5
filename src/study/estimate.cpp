#include "study/estimate.h"

#include <algorithm>

#include "backends/registry.h"
#include "base/error.h"
#include "inspect/complexity.h"
#include "lab/options.h"
#include "onnx/network.h"
#include "peers/peer_name.h"

namespace ridgeline::study {
namespace {

// What the parts of a measurement take beside the iterations that are asked for.
constexpr double kStart = 0.5;          // of the program
constexpr double kPeerStart = 6.0;      // of a framework
constexpr double kSearchSteps = 40.0;   // where plans are made by measuring
constexpr double kWarmupSteps = 10.0;   // until it is steady
constexpr double kFewestSteps = 18.0;   // 6 turns of 2, each with one that does not count
constexpr double kAfterSteps = 12.0;    // phases apart, then every step of the plan
constexpr double kUsualSeconds = 20.0;  // of bench, for a configuration
constexpr double kProfilePasses = 3.0;  // watched, unwatched, timed
constexpr double kProfileWarmup = 6.0;
constexpr std::int64_t kUsualBatch = 64, kUsualProfile = 5, kUsualEpochs = 10, kUsualFull = 500;
constexpr double kEvaluation = 0.1;  // of an epoch
constexpr double kCpuCeilings = 25.0, kGpuCeilings = 15.0;

// The share of a device's arithmetic that networks usually reach.
double usual_share(const ExecutorName& executor) {
  if (is_peer(executor.backend)) return 0.2;
  const Backend* backend = find_backend(executor.backend);
  return backend == nullptr ? 0.3 : backend->usual_share;
}

std::int64_t batch_of(const Part& part, const Configuration& configuration, std::int64_t samples) {
  const std::vector<std::int64_t>& batches = configuration.batches;
  const bool full =
      part.full_batch || std::find(batches.begin(), batches.end(), kFullBatch) != batches.end();
  if (full) return std::max<std::int64_t>(samples, 1);
  return batches.empty() ? kUsualBatch : *std::max_element(batches.begin(), batches.end());
}

OptimizerOptions optimizer_of(const Part& part, const Configuration& configuration) {
  OptimizerOptions options;
  if (!configuration.optimizer.empty()) options.name = configuration.optimizer;
  if (options.name == "sgd") options.momentum = part.momentum;
  options.weight_decay = part.weight_decay;
  return options;
}

ModelConfig model_of(const Part& part, const Configuration& configuration, const DataShape& data) {
  ModelConfig model = onnx::named_config(configuration.model);
  if (data.channels > 0) {
    model.channels = data.channels;
    model.height = data.height;
    model.width = data.width;
    model.classes = data.classes;
  }
  if (part.classes) model.classes = *part.classes;
  set_image(model, configuration.image);
  for (const auto& [name, value] : configuration.settings) model.options[name] = value;
  check_config(model);
  return model;
}

}  // namespace

StepDemand Estimator::demand(const Part& part, const Configuration& configuration,
                             const std::string& data) {
  const DataShape shape = data.empty() ? DataShape{} : shape_of_data(data);
  StepSpec spec;
  spec.model = model_of(part, configuration, shape);
  spec.freeze = part.freeze;
  const OptimizerOptions optimizer = optimizer_of(part, configuration);
  spec.optimizer = optimizer_attributes(optimizer);
  const std::int64_t samples = configuration.samples.value_or(shape.samples);
  spec.batch = batch_of(part, configuration, samples);

  const bool inference = part.command == PartCommand::inference;
  const ModelConfig& model = spec.model;
  StepDemand& demand = known_[{
      configuration.model, model.options, ImageShape{model.channels, model.height, model.width},
      model.classes, spec.batch, optimizer.name, momentum_of(optimizer), part.freeze, inference}];
  if (demand.batch == 0) {
    const std::unique_ptr<Device> cpu = make_device("cpu");
    const Plan plan = dry_plan(spec, PlanRequest{}, *cpu);
    const BatchComplexity complexity = batch_complexity(plan, spec.batch);
    demand.flops = static_cast<double>(inference ? complexity.work.forward().flops
                                                 : complexity.work.total.flops);
    demand.moved_bytes = static_cast<double>(complexity.work.moved_bytes) * (inference ? 0.3 : 1.0);
    demand.memory = complexity.peak;
    demand.batch = spec.batch;
  }
  StepDemand found = demand;
  found.data_size = samples;
  return found;
}

double Estimator::step_seconds(const StepDemand& demand, const ExecutorName& executor) {
  const DeviceSpeed speed = machine_.speed(executor.device == "mps" ? "cpu" : executor.device);
  const double launches = executor.device == "cpu" ? 20e-6 : 200e-6;
  return std::max(demand.flops / (usual_share(executor) * speed.flops),
                  demand.moved_bytes / (0.7 * speed.bytes)) +
         launches;
}

double Estimator::seconds(const Part& part, const StepDemand& demand,
                          const ExecutorName& executor) {
  const double step = step_seconds(demand, executor);
  double start = is_peer(executor.backend) ? kPeerStart : kStart;
  if (measures(executor.backend)) start += kSearchSteps * step;
  const auto count = [](const std::optional<std::int64_t>& given, std::int64_t usual) {
    return static_cast<double>(given.value_or(usual));
  };
  switch (part.command) {
    case PartCommand::bench:
    case PartCommand::inference: {
      const double warmup = count(part.warmup, static_cast<std::int64_t>(kWarmupSteps)) * step;
      const double measured =
          part.iterations ? count(part.iterations, 0) * 1.1 * step
                          : std::max(part.max_seconds.value_or(kUsualSeconds), kFewestSteps * step);
      // Batch 1 comes along with inference.
      const double times = part.command == PartCommand::inference ? 2.0 : 1.0;
      return start + times * (warmup + measured + kAfterSteps * step);
    }
    case PartCommand::profile:
      return start +
             (kProfileWarmup + kProfilePasses * count(part.iterations, kUsualProfile)) * step;
    case PartCommand::train: {
      if (part.full_batch) return start + count(part.iterations, kUsualFull) * step;
      const double steps = static_cast<double>(demand.data_size) /
                           static_cast<double>(std::max<std::int64_t>(demand.batch, 1));
      return start + count(part.epochs, kUsualEpochs) * (1.0 + kEvaluation) * steps * step +
             kAfterSteps * step;
    }
    case PartCommand::ceilings:
      break;
  }
  return ceilings_seconds(executor.device);
}

double Estimator::ceilings_seconds(const std::string& device) const {
  return machine_.ceilings_known(device) ? 0.0 : device == "cpu" ? kCpuCeilings : kGpuCeilings;
}

}  // namespace ridgeline::study
