// That all executors computed the same: losses of peers beside the engine's, and of trainings.

#include <algorithm>
#include <cmath>

#include "report/exhibits/run_table.h"

namespace ridgeline::report {
namespace {

bool was_checked(const RunView& run) { return run.run.notes.contains("parity"); }

bool has_losses(const RunView& run) {
  return !run.epochs.empty() && std::isfinite(run.epochs.front().train_loss);
}

Tables peers_tables(const ExhibitInput& input) {
  RunTable table(input, chosen(input.runs, was_checked),
                 {.title = "Parity",
                  .caption = " Peers get the engine's initial weights and batch, and their losses "
                             "of the first steps are compared with the engine's before anything "
                             "is measured.",
                  .always = {"model", "batch", "executor"},
                  .part = "peers"});
  const auto difference = [](const RunView& run) {
    return number_of(run, "parity_max_difference");
  };
  const char* const none = "no losses were compared";
  table.numbers({"largest difference", "", true, "Relative, of all losses compared"}, difference,
                1.0, none);
  table.column({"same", "", false, "Whether the difference is within what is allowed"},
               [&](const RunView& run) {
                 const bool differs = std::ranges::any_of(
                     run.findings, [](const Finding& found) { return found.name == "parity"; });
                 return difference(run) ? words(differs ? "no" : "yes") : table.missing(none);
               });
  table.column({"evidence", "", false, "What was compared"},
               [](const RunView& run) { return words(run.run.notes.at("parity")); });
  return table.made();
}

// Trainings of the same work by different executors, in groups.
std::vector<Runs> alike(const Runs& runs) {
  std::vector<Runs> groups;
  for (const RunView* run : runs) {
    const auto found = std::ranges::find_if(groups, [&](const Runs& group) {
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
double first_loss(const Runs& group, const RunView& run) {
  const bool of_step = std::ranges::all_of(group, [](const RunView* each) {
    const auto loss = number_of(*each, "first_loss");
    return loss && std::isfinite(*loss);
  });
  return of_step ? number_of(run, "first_loss").value() : run.epochs.front().train_loss;
}

Tables trainings_tables(const ExhibitInput& input) {
  const std::vector<Runs> groups = alike(chosen(input.runs, has_losses));
  RunTable table(input, flat(groups),
                 {.title = "Parity",
                  .caption = " Trainings of the same work with the same seed, hence the same "
                             "initial weights and order of data: losses differ by rounding alone, "
                             "which grows from step to step. Differences are to the first row of "
                             "the same work.",
                  .always = {"model", "machine", "executor"},
                  .part = "trainings"});
  table.column(
      {"first loss", "", true, "Of the first step; where it was not stored, of the first epoch"},
      [&](const RunView& run) {
        const double loss = first_loss(group_of(groups, run), run);
        Cell cell = number(loss, {run.run.id});
        cell.text = number_text(loss, 6);
        return cell;
      });
  table.column({"difference", "%", true, "Of the first losses, relative"}, [&](const RunView& run) {
    const Runs& group = group_of(groups, run);
    if (&run == group.front()) return words("–");
    const double loss = first_loss(group, run), other = first_loss(group, *group.front());
    return number(100.0 * std::abs(loss - other) / std::abs(other),
                  {run.run.id, group.front()->run.id});
  });
  table.final_loss();
  table.final_accuracy();
  table.column({"difference", "points", true, "Of the final accuracies, in percentage points"},
               [&](const RunView& run) {
                 const RunView& first = *group_of(groups, run).front();
                 const auto accuracy = last_accuracy(run), reference = last_accuracy(first);
                 if (&run == &first) return words("–");
                 if (!accuracy || !reference) return table.missing(kUntested);
                 return number(100.0 * (*accuracy - *reference), {run.run.id, first.run.id});
               });
  return table.made();
}

}  // namespace

Tables make_parity(const ExhibitInput& input) {
  Tables tables = peers_tables(input);
  for (Table& table : trainings_tables(input)) tables.push_back(std::move(table));
  return tables;
}

}  // namespace ridgeline::report
