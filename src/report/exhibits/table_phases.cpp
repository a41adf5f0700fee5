// Where the time of an iteration goes: forward, backward, optimizer; kernels, copies, waiting.

#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/stats/summary.h"
#include "base/error.h"
#include "measure/step_times.h"
#include "report/exhibits/run_table.h"

namespace ridgeline::report {
namespace {

bool any_training(const RunView& run) {
  return run.seconds.has_value() && !is_profile(run) && !is_inference(run);
}

// The phases of an iteration, in seconds, and how they are known.
struct Phases {
  std::optional<double> forward, backward, optimizer;
  std::string note;     // how they are known where not by split iterations
  std::string missing;  // why there are none
};

Phases phases_of(const Data& data, const RunView& run) {
  std::vector<double> forward, backward, optimizer;
  for (const Sample& sample : data.store().samples(run.run.id)) {
    if (sample.kind != SampleKind::split) continue;
    if (sample.forward_seconds) forward.push_back(*sample.forward_seconds);
    if (sample.backward_seconds) backward.push_back(*sample.backward_seconds);
    if (sample.optimizer_seconds) optimizer.push_back(*sample.optimizer_seconds);
  }
  Phases phases;
  if (!forward.empty() && !backward.empty() && !optimizer.empty()) {
    phases.forward = median_of(forward);
    phases.backward = median_of(backward);
    phases.optimizer = median_of(optimizer);
    return phases;
  }
  const std::vector<StepTime> steps = data.store().steps(run.run.id);
  const PhaseSeconds split = split_of(steps);
  if (steps.empty()) {
    phases.missing = is_training(run) ? "a training does not time its phases"
                                      : "the phases of this run were not timed";
  } else if (split.joint > 0.0) {
    phases.missing = "one kernel computes several phases at once: their times cannot be told apart";
  } else {
    phases.forward = split.forward;
    phases.backward = split.backward;
    phases.optimizer = split.optimizer;
    phases.note = "phases from the times of the plan's single steps";
  }
  return phases;
}

// Seconds of the whole training, evaluations apart.
std::optional<double> total_seconds(const RunView& run) {
  if (!is_training(run) || run.epochs.empty()) return std::nullopt;
  return training_seconds(run);
}

// Iterations of a training: every epoch has some, the last batch of each may be smaller.
std::int64_t iterations_of(const RunView& run) {
  if (const auto told = number_of(run, "training_steps")) return std::llround(*told);
  const std::int64_t batch = std::max<std::int64_t>(run.run.work.batch, 1);
  // The very first step is timed apart.
  std::int64_t iterations = number_of(run, "first_step_seconds") ? 1 : 0;
  for (const EpochRecord& epoch : run.epochs) iterations += (epoch.samples + batch - 1) / batch;
  return iterations;
}

// The training that the iterations of a row belong to. `trainings` must outlive the table.
void add_training(RunTable& table, const Trainings& trainings) {
  const char* const why = "no training of this network by this executor is shown";
  table.column({"training", "s", true, "All iterations of the training, without tests"},
               [&, why](const RunView& run) {
                 const Trainings::Found training = trainings.of(run);
                 if (training.run == nullptr) return table.missing(why);
                 const auto seconds = total_seconds(*training.run);
                 Cell cell = table.number(seconds, 1.0, *training.run, why);
                 if (!seconds || training.run == &run) return cell;
                 return table.noted(
                     std::move(cell),
                     fmt::format("of another run than the phases: training, {}", training.name));
               });
  table.column({"iterations", "", true, "Of the training"}, [&, why](const RunView& run) {
    const RunView* training = trainings.of(run).run;
    return training != nullptr && total_seconds(*training)
               ? count_cell(iterations_of(*training), {training->run.id})
               : table.missing(why);
  });
}

}  // namespace

Tables make_phases(const ExhibitInput& input) {
  // The total of a training stands in the row of the iterations that were measured apart.
  const Runs all = chosen(input.runs, any_training), runs = without_trainings(all);
  RunTable table(
      input, runs,
      {.title = "Times of training and its phases",
       .caption = fmt::format(
           " The iteration is the median of those that run as a whole, with its 95% interval ({}). "
           "Phases are medians of iterations with a clock between them, which takes time itself: "
           "they need not add up to the iteration.",
           samples_text(runs))});
  const Trainings trainings(input.data, only(all, is_training));
  if (!only(all, [](const RunView& run) { return total_seconds(run).has_value(); }).empty()) {
    add_training(table, trainings);
  }
  table.column({"iteration", "ms", true, "Median wall time and its interval"},
               [&](const RunView& run) { return table.median(run); });
  const auto phases = once_per_run([&](const RunView& run) { return phases_of(input.data, run); });
  const auto add = [&](const char* title, std::optional<double> Phases::*part,
                       const char* meaning) {
    table.column({title, "ms", true, meaning}, [&, part](const RunView& run) {
      const Phases& of = phases(run);
      Cell cell = table.number(of.*part, 1e3, run, of.missing);
      return of.*part && !of.note.empty() ? table.noted(std::move(cell), of.note) : cell;
    });
  };
  add("forward", &Phases::forward, "From the pixels to the loss");
  add("backward", &Phases::backward, "Gradients of data and parameters");
  add("optimizer", &Phases::optimizer, "Update of the parameters");
  return table.made();
}

Tables make_breakdown(const ExhibitInput& input) {
  struct Part {
    const char *title, *name, *meaning;
  };
  constexpr std::array<Part, 6> kParts = {
      {{"kernel", "breakdown_kernel_seconds", "The device computes"},
       {"copy", "breakdown_copy_seconds", "The device copies, and does not compute"},
       {"runtime", "breakdown_runtime_seconds", "Calls of the device's runtime"},
       {"data", "breakdown_data_seconds", "Waiting for the loader"},
       {"CPU", "breakdown_cpu_seconds", "The host's own work"},
       {"idle", "breakdown_idle_seconds", "Neither host nor device works"}}};
  const auto number_named = [](const char* name) {
    return [name](const RunView& run) { return number_of(run, name); };
  };
  const auto kernel = number_named("breakdown_kernel_seconds");
  const auto sum_of = [&](const RunView& run) {
    double sum = 0.0;
    for (const Part& part : kParts) sum += number_of(run, part.name).value_or(0.0);
    return sum;
  };
  RunTable table(
      input, chosen(input.runs, [&](const RunView& run) { return kernel(run).has_value(); }),
      {.title = "Breakdown of an iteration",
       .caption = " Mean of the middle iterations that were watched. Every moment belongs to one "
                  "part, the first that fits in this order; the parts add up to the iteration."});
  for (const Part& part : kParts) {
    table.numbers({part.title, "ms", true, part.meaning}, number_named(part.name), 1e3,
                  "the profile does not tell this part");
  }
  table.column({"iteration", "ms", true, "Sum of the parts: an iteration that is watched"},
               [&](const RunView& run) {
                 return table.marked(number(1e3 * sum_of(run), {run.run.id}), run, Marks::speed);
               });
  table.column(
      {"kernel share", "%", true, "Of the iteration, the device computes"},
      [&](const RunView& run) { return number(100.0 * *kernel(run) / sum_of(run), {run.run.id}); });
  table.numbers({"not watched", "ms", true, "The same iteration without the profiler"},
                number_named("unprofiled_seconds"), 1e3, "no iteration ran without the profiler");
  table.column({"iterations", "", true, "That were watched"}, [&](const RunView& run) {
    const auto iterations = number_of(run, "profiled_iterations");
    return iterations ? count_cell(std::llround(*iterations), {run.run.id})
                      : table.missing("the number was not stored");
  });
  return table.made();
}

}  // namespace ridgeline::report
