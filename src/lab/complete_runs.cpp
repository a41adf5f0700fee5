#include "lab/complete_runs.h"

#include "base/error.h"
#include "inspect/complexity.h"
#include "inspect/network_description.h"
#include "store/identity_fields.h"
#include "train/step_runner.h"

namespace ridgeline {
namespace {

// Stores come from anywhere: no plan is made for what no machine could hold.
constexpr double kMostPixels = 1e11;

struct Completion {
  NetworkRecord network;
  std::map<std::string, double> numbers;
  std::string note;
};

StepSpec step_of(const Work& work) {
  if (work.batch < 1 || work.image.pixels() * static_cast<double>(work.batch) > kMostPixels) {
    bad_input("no machine could hold a batch of {} images of {}", work.batch, work.image.text());
  }
  if (!work.model_hash.empty()) bad_input("the network came from a file");
  StepSpec step;
  step.model = default_config(work.model);
  step.model.channels = work.image.channels;
  step.model.height = work.image.height;
  step.model.width = work.image.width;
  step.model.classes = work.classes;
  step.model.options = work.settings;
  check_config(step.model);
  step.batch = work.batch;
  step.freeze = work.freeze;
  if (work.optimizer.starts_with("adam")) {
    step.optimizer = AdamAttributes{.weight_decay = work.weight_decay};
  } else {
    step.optimizer = SgdAttributes{.momentum = work.momentum, .weight_decay = work.weight_decay};
  }
  return step;
}

Completion completion_of(const Work& work) {
  Completion made;
  try {
    const StepSpec step = step_of(work);
    const std::unique_ptr<Device> device = make_device("cpu");
    StepRunner dry(*device, PlanRequest{});
    const bool training = work.kind == "training";
    const Session::PlanId plan = training ? dry.add_training(step) : dry.add_evaluation(step);
    const auto numbers = complexity_numbers(dry.session().plan(plan), training);
    // Bytes depend on the executor's own plan, which is not known any more.
    for (const char* name : {"forward_macs", "forward_flops", "training_flops"}) {
      if (const auto found = numbers.find(name); found != numbers.end())
        made.numbers.insert(*found);
    }
    made.numbers["parameters"] = static_cast<double>(count_parameters(dry.parameters()));
    made.network = describe_network(step.model);
    made.note = "computed later, from a plan of the same network that was not run";
  } catch (const Error& error) {
    made.note = fmt::format("n/a: {}", error.what());
  }
  return made;
}

}  // namespace

void complete_runs(Store& store) {
  if (!store.wants_completion()) return;
  std::map<std::string, Completion> known;
  for (const RunRecord& run : store.runs()) {
    if (!run.notes.contains("migrated") || run.notes.contains("complexity")) continue;
    const std::string key = identity_key(run);
    const auto [entry, fresh] = known.try_emplace(key);
    if (fresh) entry->second = completion_of(run.work);
    // What was measured with the run stays.
    std::map<std::string, double> numbers = entry->second.numbers;
    for (const auto& [name, value] : run.numbers) numbers.erase(name);
    store.complete(run.id, entry->second.network, numbers, {{"complexity", entry->second.note}});
  }
}

}  // namespace ridgeline
