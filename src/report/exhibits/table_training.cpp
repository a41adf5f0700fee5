// Whole trainings: epochs, accuracy, memory, time to a wanted accuracy.

#include <algorithm>
#include <array>
#include <set>

#include "base/error.h"
#include "lab/compare/run_series.h"
#include "report/exhibits/makers.h"
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
  if (std::count_if(run.epochs.begin(), run.epochs.end(), trained) < 2) return std::nullopt;
  double sum = 0.0;
  const std::vector<EpochRecord> epochs = steady_epochs(run.epochs);
  for (const EpochRecord& epoch : epochs) sum += pass_seconds(run, epoch);
  return sum / static_cast<double>(epochs.size());
}

std::string unknown_before(const RunView& run) {
  return fmt::format("{}, and the time before is not stored", run.resumed());
}

struct Accuracies {
  std::optional<double> last, best;
};
Accuracies accuracies_of(const RunView& run) {
  Accuracies found;
  found.best = number_of(run, "former_best_test_accuracy");
  for (const EpochRecord& epoch : run.epochs) {
    if (!epoch.test_accuracy) continue;
    found.last = epoch.test_accuracy;
    found.best = std::max(found.best.value_or(0.0), *epoch.test_accuracy);
  }
  return found;
}

const char* const kUntested = "the network was not tested";

// Accuracies that trainings were asked for; else common levels, of those that at least one training
// reached the highest three.
std::vector<double> levels_of(const Runs& runs) {
  static constexpr std::array<double, 15> kLevels = {0.2, 0.3,  0.4,  0.5,  0.6,  0.7,   0.8, 0.85,
                                                     0.9, 0.93, 0.95, 0.97, 0.98, 0.985, 0.99};
  std::set<double> asked;
  double best = 0.0;
  for (const RunView* run : runs) {
    if (const auto target = run->run.work.target_accuracy) asked.insert(*target);
    best = std::max(best, accuracies_of(*run).best.value_or(0.0));
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
Cell first_epoch_cell(Table& table, const RunView& run) {
  const std::string resumed = run.resumed();
  if (!resumed.empty()) return missing(table, resumed);
  const bool step = run.run.work.full_batch && first_step(run) > 0.0;
  return number(first_step(run) + (step ? 0.0 : run.epochs.front().seconds), {run.run.id});
}

}  // namespace

Tables make_training(const ExhibitInput& input) {
  const Runs runs = chosen(input.runs, has_epochs);
  if (runs.empty()) return {};
  const bool gpu = !only(runs, on_gpu).empty();
  const Heads heads = heads_of(input.data, runs, {"model", "machine", "executor"});
  Table table = begin_table(input, "", "Training", heads);
  table.caption += fmt::format(
      " Times are of training alone, tests apart. The first epoch, with the first step and all "
      "that "
      "happens only once, stands apart from the mean of the others. Throughput is the median of "
      "the "
      "epochs after the first with its 95% interval (with fewer than six its range; {}). Final is "
      "the accuracy after the last epoch, not a mean.",
      samples_text(runs));
  for (TableColumn column : std::vector<TableColumn>{
           {"epochs", "", true, "Passes over the data"},
           {"first epoch", "s", true, "With the very first step"},
           {"epoch", "s", true, "Mean of the epochs after the first"},
           {"total", "s", true, "All training from the very beginning, without tests"},
           {"throughput", "img/s", true, "Samples a second after the first epoch"},
           {"waiting", "%", true, "Share of the time that the loader is waited for"},
           {"final loss", "", true, "Mean training loss of the last epoch"},
           {"final Acc@1", "%", true, "Test accuracy after the last epoch"},
           {"max Acc@1", "%", true, "Highest test accuracy of all epochs"},
           {"RAM", "MB", true, "Most resident memory of the process, 10^6 bytes"}}) {
    table.columns.push_back(std::move(column));
  }
  if (gpu) table.columns.push_back({"VRAM", "MB", true, "Most memory on the graphics processor"});
  for (const RunView* run : runs) {
    std::vector<Cell> row = begin_row(input.data, heads, *run);
    const std::vector<RunId> id = {run->run.id};
    row.push_back(count_cell(run->epochs.back().epoch, id));
    row.push_back(first_epoch_cell(table, *run));
    row.push_back(
        number_cell(table, mean_later_epoch(*run), 1.0, *run, "there was only one epoch"));
    double waited = 0.0, seconds = 0.0;
    for (const EpochRecord& epoch : run->epochs) {
      seconds += epoch.seconds;
      waited += epoch.data_wait_seconds;
    }
    row.push_back(number_cell(table, training_seconds(*run), 1.0, *run, unknown_before(*run)));
    row.push_back(rate_cell(input.data, table, *run));
    row.push_back(seconds > 0.0 ? number(100.0 * waited / seconds, id)
                                : missing(table, "no time but that of the first step"));
    row.push_back(loss_cell(table, *run));
    const Accuracies accuracies = accuracies_of(*run);
    row.push_back(number_cell(table, accuracies.last, 100.0, *run, kUntested));
    if (accuracies.last) mark_as(input.data, table, row.back(), *run, Marks::accuracy);
    row.push_back(number_cell(table, accuracies.best, 100.0, *run, kUntested));
    row.push_back(number_cell(table, input.data.process_memory_bytes(*run), 1e-6, *run,
                              "the memory of the process was not measured"));
    if (gpu) {
      row.push_back(number_cell(table, input.data.device_memory_bytes(*run), 1e-6, *run,
                                on_gpu(*run) ? "the memory of the device was not measured"
                                             : "it ran on a processor: there is no such memory"));
    }
    table.rows.push_back(std::move(row));
  }
  return {table};
}

Tables make_targets(const ExhibitInput& input) {
  const Runs runs =
      chosen(input.runs, [](const RunView& run) { return accuracies_of(run).best.has_value(); });
  const std::vector<double> levels = levels_of(runs);
  if (runs.empty() || levels.empty()) return {};
  const Heads heads = heads_of(input.data, runs, {"model", "machine", "executor"});
  Table table = begin_table(input, "", "Time to a wanted accuracy", heads);
  table.caption +=
      " Epochs and training time, tests apart, until the test accuracy reached the level for the "
      "first time; it is looked at after each epoch only. With full batches an epoch is one "
      "iteration.";
  for (const double level : levels) {
    const std::string percent = fmt::format("{:g}%", 100.0 * level);
    table.columns.push_back(
        {percent, "epochs", true, "Epochs until the test accuracy was " + percent});
    table.columns.push_back(
        {percent, "s", true, "Training time until the test accuracy was " + percent});
  }
  table.columns.push_back({"max Acc@1", "%", true, "Highest test accuracy of all epochs"});
  for (const RunView* run : runs) {
    std::vector<Cell> row = begin_row(input.data, heads, *run);
    for (const double level : levels) {
      const Reached found = reached(*run, level);
      row.push_back(found.epoch ? count_cell(*found.epoch, {run->run.id})
                                : missing(table, found.missing));
      row.push_back(number_cell(table, found.seconds, 1.0, *run, found.missing));
    }
    row.push_back(number_cell(table, accuracies_of(*run).best, 100.0, *run, kUntested));
    mark(input.data, table, row.back(), *run);
    table.rows.push_back(std::move(row));
  }
  return {table};
}

}  // namespace ridgeline::report
