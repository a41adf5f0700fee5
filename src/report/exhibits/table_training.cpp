// Whole trainings: epochs, accuracy, memory, time to a wanted accuracy.

#include <algorithm>
#include <array>
#include <set>

#include "analysis/compare/run_series.h"
#include "base/error.h"
#include "report/exhibits/run_table.h"

namespace ridgeline::report {
namespace {

bool has_epochs(const RunView& run) { return !run.epochs.empty(); }

double first_step(const RunView& run) { return number_of(run, "first_step_seconds").value_or(0.0); }

// Seconds of one pass over the data. With full batches a record holds several.
double pass_seconds(const RunView& run, const EpochRecord& epoch) {
  const auto samples = static_cast<double>(epoch.samples);
  if (!run.run.work.full_batch || samples <= 0.0) return epoch.seconds;
  return epoch.seconds * static_cast<double>(run.run.work.data_samples) / samples;
}

std::optional<double> mean_later_epoch(const RunView& run) {
  const auto trained = [](const EpochRecord& epoch) { return epoch.samples > 0; };
  if (std::ranges::count_if(run.epochs, trained) < 2) return std::nullopt;
  double sum = 0.0;
  const std::vector<EpochRecord> epochs = steady_epochs(run.epochs);
  for (const EpochRecord& epoch : epochs) sum += pass_seconds(run, epoch);
  return sum / static_cast<double>(epochs.size());
}

std::string unknown_before(const RunView& run) {
  return fmt::format("{}, and the time before is not stored", run.resumed());
}

// Of all epochs, also those before the training was resumed.
std::optional<double> best_accuracy(const RunView& run) {
  std::optional<double> best = number_of(run, "former_best_test_accuracy");
  for (const EpochRecord& epoch : run.epochs) {
    if (epoch.test_accuracy) best = std::max(best.value_or(0.0), *epoch.test_accuracy);
  }
  return best;
}

void add_best(RunTable& table, std::optional<Marks> marks = std::nullopt) {
  table.column({"max Acc@1", "%", true, "Highest test accuracy of all epochs"},
               [&table, marks](const RunView& run) {
                 Cell cell = table.number(best_accuracy(run), 100.0, run, kUntested);
                 return marks ? table.marked(std::move(cell), run, *marks) : cell;
               });
}

// Of the time of the epochs, in percent.
std::optional<double> waiting_share(const RunView& run) {
  double waited = 0.0, seconds = 0.0;
  for (const EpochRecord& epoch : run.epochs) {
    seconds += epoch.seconds;
    waited += epoch.data_wait_seconds;
  }
  return seconds > 0.0 ? std::optional(100.0 * waited / seconds) : std::nullopt;
}

// Accuracies that trainings were asked for; else common levels, of those that at least one training
// reached the highest three.
std::vector<double> levels_of(const Runs& runs) {
  static constexpr std::array<double, 15> kLevels = {0.2, 0.3,  0.4,  0.5,  0.6,  0.7,   0.8, 0.85,
                                                     0.9, 0.93, 0.95, 0.97, 0.98, 0.985, 0.99};
  std::set<double> asked;
  double best = 0.0;
  for (const RunView* run : runs) {
    if (const auto target = run->run.work.target_accuracy) asked.insert(*target);
    best = std::max(best, best_accuracy(*run).value_or(0.0));
  }
  std::vector<double> levels(asked.begin(), asked.end());
  for (const double level : kLevels) {
    if (asked.empty() && level <= best) levels.push_back(level);
  }
  if (levels.size() > 3) levels.erase(levels.begin(), levels.end() - 3);
  return levels;
}

struct Reached {
  std::optional<std::int64_t> epoch = {};
  std::optional<double> seconds = {};  // of training until then
  std::string missing = {};            // why one of them is
};
Reached reached(const RunView& run, double level) {
  if (number_of(run, "former_best_test_accuracy").value_or(0.0) >= level) {
    return {.missing = "reached before the training was " + run.resumed()};
  }
  std::optional<double> seconds = seconds_before_epochs(run);
  for (const EpochRecord& epoch : run.epochs) {
    if (seconds) *seconds += epoch.seconds;
    if (epoch.test_accuracy && *epoch.test_accuracy >= level) {
      return {epoch.epoch, seconds, unknown_before(run)};
    }
  }
  return {.missing = fmt::format("not reached in {} epochs", run.epochs.back().epoch)};
}

// With full batches the first epoch is the first step.
Cell first_epoch_cell(RunTable& table, const RunView& run) {
  const std::string resumed = run.resumed();
  if (!resumed.empty()) return table.missing(resumed);
  const bool step = run.run.work.full_batch && first_step(run) > 0.0;
  return number(first_step(run) + (step ? 0.0 : run.epochs.front().seconds), {run.run.id});
}

}  // namespace

Tables make_training(const ExhibitInput& input) {
  const Data& data = input.data;
  const Runs runs = chosen(input.runs, has_epochs);
  RunTable table(
      input, runs,
      {.title = "Training",
       .caption = fmt::format(
           " Times are of training alone, tests apart. The first epoch, with the first step and "
           "all that happens only once, stands apart from the mean of the others. Throughput is "
           "the median of the epochs after the first with its 95% interval (with fewer than six "
           "its range; {}). Final is the accuracy after the last epoch, not a mean.",
           samples_text(runs)),
       .always = {"model", "machine", "executor"}});
  table.column({"epochs", "", true, "Passes over the data"}, [](const RunView& run) {
    return count_cell(run.epochs.back().epoch, {run.run.id});
  });
  table.column({"first epoch", "s", true, "With the very first step"},
               [&](const RunView& run) { return first_epoch_cell(table, run); });
  table.numbers({"epoch", "s", true, "Mean of the epochs after the first"}, mean_later_epoch, 1.0,
                "there was only one epoch");
  table.column({"total", "s", true, "All training from the very beginning, without tests"},
               [&](const RunView& run) {
                 return table.number(training_seconds(run), 1.0, run, unknown_before(run));
               });
  table.throughput("Samples a second after the first epoch");
  table.numbers({"waiting", "%", true, "Share of the time that the loader is waited for"},
                waiting_share, 1.0, "no time but that of the first step");
  table.final_loss();
  table.final_accuracy();
  add_best(table);
  table.numbers(
      {"RAM", "MB", true, "Most resident memory of the process, 10^6 bytes"},
      [&](const RunView& run) { return data.process_memory_bytes(run); }, 1e-6,
      "the memory of the process was not measured");
  if (!only(runs, on_gpu).empty()) {
    table.column(
        {"VRAM", "MB", true, "Most memory on the graphics processor"}, [&](const RunView& run) {
          return table.number(data.device_memory_bytes(run), 1e-6, run,
                              on_gpu(run) ? "the memory of the device was not measured"
                                          : "it ran on a processor: there is no such memory");
        });
  }
  return table.made();
}

Tables make_targets(const ExhibitInput& input) {
  const Runs runs =
      chosen(input.runs, [](const RunView& run) { return best_accuracy(run).has_value(); });
  const std::vector<double> levels = levels_of(runs);
  if (levels.empty()) return {};
  RunTable table(input, runs,
                 {.title = "Time to a wanted accuracy",
                  .caption = " Epochs and training time, tests apart, until the test accuracy "
                             "reached the level for the first time; it is looked at after each "
                             "epoch only. With full batches an epoch is one iteration.",
                  .always = {"model", "machine", "executor"}});
  for (const double level : levels) {
    const std::string percent = fmt::format("{:g}%", 100.0 * level);
    table.column({percent, "epochs", true, "Epochs until the test accuracy was " + percent},
                 [&, level](const RunView& run) {
                   const Reached found = reached(run, level);
                   return found.epoch ? count_cell(*found.epoch, {run.run.id})
                                      : table.missing(found.missing);
                 });
    table.column({percent, "s", true, "Training time until the test accuracy was " + percent},
                 [&, level](const RunView& run) {
                   const Reached found = reached(run, level);
                   return table.number(found.seconds, 1.0, run, found.missing);
                 });
  }
  add_best(table, Marks::all);
  return table.made();
}

}  // namespace ridgeline::report
