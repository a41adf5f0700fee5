// That all executors computed the same: losses of peers beside the engine's, and of trainings.

#include <algorithm>
#include <cmath>

#include "report/exhibits/makers.h"
#include "report/exhibits/run_table.h"

namespace ridgeline::report {
namespace {

bool was_checked(const RunView& run) { return run.run.notes.contains("parity"); }

bool has_epochs(const RunView& run) {
  return !run.epochs.empty() && std::isfinite(run.epochs.front().train_loss);
}

std::optional<Table> peers_table(const ExhibitInput& input) {
  const Runs runs = chosen(input.runs, was_checked);
  if (runs.empty()) return std::nullopt;
  const Heads heads = heads_of(input.data, runs, {"model", "batch", "executor"});
  Table table = begin_table(input, "peers", "Parity", heads);
  table.caption +=
      " Peers get the engine's initial weights and batch, and their losses of the first steps are "
      "compared with the engine's before anything is measured.";
  table.columns.push_back({"largest difference", "", true, "Relative, of all losses compared"});
  table.columns.push_back({"same", "", false, "Whether the difference is within what is allowed"});
  table.columns.push_back({"evidence", "", false, "What was compared"});
  for (const RunView* run : runs) {
    std::vector<Cell> row = begin_row(input.data, heads, *run);
    const bool differs = std::any_of(run->findings.begin(), run->findings.end(),
                                     [](const Finding& found) { return found.name == "parity"; });
    row.push_back(number_cell(table, number_of(*run, "parity_max_difference"), 1.0, *run,
                              "no losses were compared"));
    row.push_back(number_of(*run, "parity_max_difference")
                      ? words(differs ? "no" : "yes")
                      : missing(table, "no losses were compared"));
    row.push_back(words(run->run.notes.at("parity")));
    table.rows.push_back(std::move(row));
  }
  return table;
}

// Trainings of the same work by different executors, in groups.
std::vector<Runs> alike(const Runs& runs) {
  std::vector<Runs> groups;
  for (const RunView* run : runs) {
    const auto found = std::find_if(groups.begin(), groups.end(), [&](const Runs& group) {
      return comparable(*group.front(), *run) && group.front()->run.seed == run->run.seed;
    });
    if (found == groups.end()) {
      groups.push_back({run});
    } else {
      found->push_back(run);
    }
  }
  std::erase_if(groups, [](const Runs& group) { return group.size() < 2; });
  return groups;
}

std::optional<double> last_accuracy(const RunView& run) {
  const EpochRecord* last = last_tested(run);
  return last == nullptr ? std::nullopt : last->test_accuracy;
}

// The loss of the very first step where all of the group tell theirs, else the first epoch's mean.
double first_loss(const RunView& run, bool of_step) {
  return of_step ? number_of(run, "first_loss").value() : run.epochs.front().train_loss;
}

std::optional<Table> trainings_table(const ExhibitInput& input) {
  const std::vector<Runs> groups = alike(chosen(input.runs, has_epochs));
  const Runs runs = flat(groups);
  if (runs.empty()) return std::nullopt;
  const Heads heads = heads_of(input.data, runs, {"model", "machine", "executor"});
  Table table = begin_table(input, "trainings", "Parity", heads);
  table.caption +=
      " Trainings of the same work with the same seed, hence the same initial weights and order of "
      "data: losses differ by rounding alone, which grows from step to step. Differences are to "
      "the "
      "first row of the same work.";
  for (TableColumn column : std::vector<TableColumn>{
           {"first loss", "", true,
            "Of the first step; where it was not stored, of the first epoch"},
           {"difference", "%", true, "Of the first losses, relative"},
           {"final loss", "", true, "Mean training loss of the last epoch"},
           {"final Acc@1", "%", true, "Test accuracy after the last epoch"},
           {"difference", "points", true, "Of the final accuracies, in percentage points"}}) {
    table.columns.push_back(std::move(column));
  }
  for (const Runs& group : groups) {
    const RunView& first = *group.front();
    const bool of_step = std::all_of(group.begin(), group.end(), [](const RunView* run) {
      const auto loss = number_of(*run, "first_loss");
      return loss && std::isfinite(*loss);
    });
    for (const RunView* run : group) {
      std::vector<Cell> row = begin_row(input.data, heads, *run);
      const std::vector<RunId> id = {run->run.id}, both = {run->run.id, first.run.id};
      const double loss = first_loss(*run, of_step), other = first_loss(first, of_step);
      row.push_back(number(loss, id));
      row.back().text = number_text(loss, 6);
      row.push_back(run == &first ? words("–")
                                  : number(100.0 * std::abs(loss - other) / std::abs(other), both));
      row.push_back(loss_cell(table, *run));
      const auto accuracy = last_accuracy(*run), reference = last_accuracy(first);
      row.push_back(number_cell(table, accuracy, 100.0, *run, "the network was not tested"));
      if (accuracy) mark_as(input.data, table, row.back(), *run, Marks::accuracy);
      if (run == &first) {
        row.push_back(words("–"));
      } else if (accuracy && reference) {
        row.push_back(number(100.0 * (*accuracy - *reference), both));
      } else {
        row.push_back(missing(table, "the network was not tested"));
      }
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

}  // namespace

Tables make_parity(const ExhibitInput& input) {
  Tables tables;
  if (auto table = peers_table(input)) tables.push_back(std::move(*table));
  if (auto table = trainings_table(input)) tables.push_back(std::move(*table));
  return tables;
}

}  // namespace ridgeline::report
