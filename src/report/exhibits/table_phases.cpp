// Where the time of an iteration goes: forward, backward, optimizer; kernels, copies, waiting.

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "lab/stats/summary.h"
#include "lab/step_times.h"
#include "report/exhibits/makers.h"
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

}  // namespace

Tables make_phases(const ExhibitInput& input) {
  // The total of a training stands in the row of the iterations that were measured apart.
  const Runs all = chosen(input.runs, any_training), runs = without_trainings(all);
  if (runs.empty()) return {};
  const Heads heads = heads_of(input.data, runs, {"model", "batch", "machine", "executor"});
  Table table = begin_table(input, "", "Times of training and its phases", heads);
  table.caption += fmt::format(
      " The iteration is the median of those that run as a whole, with its 95% interval ({}). "
      "Phases "
      "are medians of iterations with a clock between them, which takes time itself: they need not "
      "add up to the iteration.",
      samples_text(runs));
  const Trainings trainings(input.data, only(all, is_training));
  const bool total = std::any_of(
      all.begin(), all.end(), [](const RunView* run) { return total_seconds(*run).has_value(); });
  if (total) {
    table.columns.push_back(
        {"training", "s", true, "All iterations of the training, without tests"});
    table.columns.push_back({"iterations", "", true, "Of the training"});
  }
  table.columns.push_back({"iteration", "ms", true, "Median wall time and its interval"});
  table.columns.push_back({"forward", "ms", true, "From the pixels to the loss"});
  table.columns.push_back({"backward", "ms", true, "Gradients of data and parameters"});
  table.columns.push_back({"optimizer", "ms", true, "Update of the parameters"});
  for (const RunView* run : runs) {
    std::vector<Cell> row = begin_row(input.data, heads, *run);
    if (total) {
      const Trainings::Found training = trainings.of(*run);
      const auto seconds = training.run != nullptr ? total_seconds(*training.run) : std::nullopt;
      const std::string why = "no training of this network by this executor is shown";
      row.push_back(
          number_cell(table, seconds, 1.0, training.run != nullptr ? *training.run : *run, why));
      if (seconds && training.run != run) {
        row.back().notes.push_back(note_index(
            table, fmt::format("of another run than the phases: training, {}", training.name)));
      }
      row.push_back(seconds ? count_cell(iterations_of(*training.run), {training.run->run.id})
                            : missing(table, why));
    }
    row.push_back(interval(1e3 * run->seconds->value, 1e3 * run->seconds->low,
                           1e3 * run->seconds->high, {run->run.id}));
    mark_as(input.data, table, row.back(), *run, Marks::speed);
    const Phases phases = phases_of(input.data, *run);
    for (const auto& part : {phases.forward, phases.backward, phases.optimizer}) {
      row.push_back(number_cell(table, part, 1e3, *run, phases.missing));
      if (part && !phases.note.empty()) {
        row.back().notes.push_back(note_index(table, phases.note));
      }
    }
    table.rows.push_back(std::move(row));
  }
  return {table};
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
  const Runs runs = chosen(input.runs, [](const RunView& run) {
    return number_of(run, "breakdown_kernel_seconds").has_value();
  });
  if (runs.empty()) return {};
  const Heads heads = heads_of(input.data, runs, {"model", "batch", "machine", "executor"});
  Table table = begin_table(input, "", "Breakdown of an iteration", heads);
  table.caption +=
      " Mean of the middle iterations that were watched. Every moment belongs to one part, the "
      "first that fits in this order; the parts add up to the iteration.";
  for (const Part& part : kParts) {
    table.columns.push_back({part.title, "ms", true, part.meaning});
  }
  table.columns.push_back(
      {"iteration", "ms", true, "Sum of the parts: an iteration that is watched"});
  table.columns.push_back({"kernel share", "%", true, "Of the iteration, the device computes"});
  table.columns.push_back({"not watched", "ms", true, "The same iteration without the profiler"});
  table.columns.push_back({"iterations", "", true, "That were watched"});
  for (const RunView* run : runs) {
    std::vector<Cell> row = begin_row(input.data, heads, *run);
    double sum = 0.0;
    for (const Part& part : kParts) {
      const auto seconds = number_of(*run, part.name);
      sum += seconds.value_or(0.0);
      row.push_back(number_cell(table, seconds, 1e3, *run, "the profile does not tell this part"));
    }
    row.push_back(number(1e3 * sum, {run->run.id}));
    mark_as(input.data, table, row.back(), *run, Marks::speed);
    row.push_back(
        number(100.0 * *number_of(*run, "breakdown_kernel_seconds") / sum, {run->run.id}));
    row.push_back(number_cell(table, number_of(*run, "unprofiled_seconds"), 1e3, *run,
                              "no iteration ran without the profiler"));
    const auto iterations = number_of(*run, "profiled_iterations");
    row.push_back(iterations ? count_cell(std::llround(*iterations), {run->run.id})
                             : missing(table, "the number was not stored"));
    table.rows.push_back(std::move(row));
  }
  return {table};
}

}  // namespace ridgeline::report
