#include "lab/step_data.h"

#include "base/error.h"
#include "base/parallel.h"
#include "data/catalog.h"
#include "data/sample_reader.h"
#include "data/synthetic.h"
#include "train/inference_runner.h"
#include "train/step_runner.h"

namespace ridgeline {

Dataset prepare_step(StepSpec& step, const StepDataOptions& options, const RunOptions& run,
                     std::span<const PlanRequest> requests, std::int64_t samples, Device& device) {
  const bool synthetic = options.data == "synthetic";
  const auto seed = static_cast<std::uint64_t>(run.seed);
  Dataset data;
  if (synthetic) {
    set_image(step.model, options.image);
  } else {
    if (!options.image.empty()) {
      bad_input("--image {}: only for synthetic data; '{}' has its own size", options.image,
                options.data);
    }
    data =
        load_dataset(options.data,
                     {.classes = static_cast<std::int32_t>(run.classes.value_or(10)), .seed = seed})
            .train;
    fit_to_data(step.model, data);
    if (data.count() < step.batch) {
      bad_input("batch {} is larger than the data; it must be between 1 and {}", step.batch,
                data.count());
    }
    if (data.images != nullptr) {
      data = in_memory(limit(data, std::min(samples, data.count())), thread_count());
    }
  }
  set_normalisation(step, options.normalize);
  check_training_memory(device, step, requests);
  return synthetic ? synthetic_for(step.model, samples, run.seed) : data;
}

Dataset synthetic_for(const ModelConfig& model, std::int64_t count, std::int64_t seed) {
  return make_synthetic({.channels = model.channels,
                         .height = model.height,
                         .width = model.width,
                         .classes = static_cast<std::int32_t>(model.classes),
                         .count = count,
                         .test_count = 1,
                         .seed = static_cast<std::uint64_t>(seed)})
      .train;
}

void show_plans(const StepSpec& step, const RunOptions& run, std::span<const PlanRequest> requests,
                CallListener& listener, Device& device) {
  if (!run.print_plan && !run.explain) return;
  for (const PlanRequest& request : requests) {
    StepRunner dry(device, request);
    const Session::PlanId plan = dry.add_training(step);
    listener.plan(fmt::format("plan of a training step by {}\n{}\n", request.backend,
                              dry.session().plan(plan).text(run.explain)));
  }
}

void show_inference_plan(const StepSpec& step, const RunOptions& run, const PlanRequest& request,
                         CallListener& listener, Device& device) {
  if (!run.print_plan && !run.explain) return;
  const InferenceRunner dry(device, request, step);
  listener.plan(fmt::format("plan of an inference by {}, {} batch norms folded\n{}\n",
                            request.backend, dry.folds().size(), dry.plan().text(run.explain)));
}

}  // namespace ridgeline
