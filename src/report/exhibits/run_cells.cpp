// Cells and columns that several tables have.

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "report/exhibits/run_table.h"
#include "report/flags.h"

namespace ridgeline::report {
namespace {

const char* const kNotMeasured = "no iteration of this run was measured";

// One sample has no interval.
Cell estimate_cell(const Estimate& estimate, std::vector<RunId> runs) {
  return estimate.samples < 2
             ? number(estimate.value, std::move(runs))
             : interval(estimate.value, estimate.low, estimate.high, std::move(runs));
}

bool concerns(const std::string& flag, Marks marks) {
  if (marks == Marks::all) return true;
  const bool accuracy = flag == kAtChance || flag == kNotANumber;
  const bool both = flag == kSubstituted || flag == kFrozen || flag == "parity";
  return both || accuracy == (marks == Marks::accuracy);
}

}  // namespace

void mark_as(const Data& data, Table& table, Cell& cell, const RunView& run, Marks marks) {
  for (const Finding& flag : flags_of(data, run)) {
    if (concerns(flag.name, marks)) cell = noted(table, std::move(cell), footnote_of(flag));
  }
}

void mark(const Data& data, Table& table, Cell& cell, const RunView& run) {
  mark_as(data, table, cell, run, Marks::all);
}

void mark_calls(Table& table, Cell& cell) { cell = noted(table, std::move(cell), kCallsNote); }

Cell number_cell(Table& table, const std::optional<double>& value, double factor,
                 const RunView& run, const std::string& why) {
  return value ? number(*value * factor, {run.run.id}) : missing(table, why);
}

Cell count_cell(std::int64_t count, std::vector<RunId> runs) {
  Cell cell = number(static_cast<double>(count), std::move(runs));
  cell.text = count_text(count);
  return cell;
}

Cell milliseconds_cell(Table& table, const RunView& run) {
  return number_cell(table, run.seconds ? std::optional(run.seconds->value) : std::nullopt, 1e3,
                     run, kNotMeasured);
}

void drop_missing_columns(Table& table, std::initializer_list<std::string_view> titles) {
  for (std::size_t c = table.columns.size(); c-- > 0;) {
    if (!has(titles, table.columns[c].title)) continue;
    const auto is_missing = [&](const std::vector<Cell>& row) {
      return !row[c].value && row[c].text == "n/a";
    };
    if (!std::ranges::all_of(table.rows, is_missing)) continue;
    const auto place = static_cast<std::ptrdiff_t>(c);
    table.columns.erase(table.columns.begin() + place);
    for (std::vector<Cell>& row : table.rows) row.erase(row.begin() + place);
  }
  // Notes that no cell has any more; a table of this kind has no notes but those of cells.
  for (std::size_t n = table.notes.size(); n-- > 0;) {
    bool used = false;
    for (const auto& row : table.rows) {
      for (const Cell& cell : row) {
        used = used || has(cell.notes, n);
      }
    }
    if (used) continue;
    table.notes.erase(table.notes.begin() + static_cast<std::ptrdiff_t>(n));
    for (auto& row : table.rows) {
      for (Cell& cell : row) {
        for (std::size_t& note : cell.notes) note -= note > n ? 1 : 0;
      }
    }
  }
}

std::string why_no_point(const Data& data, const RunView& run) {
  if (is_peer(run)) return "a peer tells no times of single steps: its roofline is not known";
  if (data.roofs(run).empty()) {
    return fmt::format("the ceilings of {} on {} were not measured (ridgeline env --measure)",
                       run.run.executor.device, data.machine_of(run).name);
  }
  if (is_training(run)) return "a training does not time its single steps";
  return "the steps of this run were not timed";
}

void RunTable::throughput(const char* meaning) {
  column({"throughput", "img/s", true, meaning}, [this](const RunView& run) {
    return run.rate ? marked(estimate_cell(*run.rate, {run.run.id}), run, Marks::speed)
                    : missing(kNotMeasured);
  });
}

void RunTable::iteration() {
  column({"iteration", "ms", true, "Median wall time of one iteration"},
         [this](const RunView& run) { return milliseconds_cell(table_, run); });
}

void RunTable::achieved(const char* meaning) {
  numbers(
      {"achieved", "GFLOP/s", true, meaning},
      [](const RunView& run) { return run.flops_per_second; }, 1e-9,
      "the FLOPs of this run's iteration are not known");
}

void RunTable::of_the_roof(const char* meaning) {
  column({"of the roof", "%", true, meaning}, [this](const RunView& run) {
    const std::optional<RooflinePoint> point = input_.data.point(run);
    const std::optional<double> share = point ? point->efficiency() : std::nullopt;
    return number(share, 100.0, run, why_no_point(input_.data, run));
  });
}

void RunTable::bound_by() {
  column({"bound by", "", false, "What keeps it from being faster"},
         [this](const RunView& run) { return bound(run); });
}

void RunTable::final_loss() {
  column({"final loss", "", true, "Mean training loss of the last epoch"},
         [this](const RunView& run) {
           if (run.epochs.empty()) return missing(kNoTraining);
           const double loss = run.epochs.back().train_loss;
           return std::isfinite(loss) ? report::number(loss, {run.run.id})
                                      : missing("the loss is not a number");
         });
}

void RunTable::final_accuracy() {
  column({"final Acc@1", "%", true, "Test accuracy after the last epoch"},
         [this](const RunView& run) {
           const EpochRecord* last = last_tested(run);
           if (last == nullptr) return missing(run.epochs.empty() ? kNoTraining : kUntested);
           return marked(number(last->test_accuracy, 100.0, run, ""), run, Marks::accuracy);
         });
}

Cell RunTable::noted(Cell cell, const std::string& note) {
  return report::noted(table_, std::move(cell), note);
}

Cell RunTable::marked(Cell cell, const RunView& run, Marks marks) {
  mark_as(input_.data, table_, cell, run, marks);
  return cell;
}

Cell RunTable::number(const std::optional<double>& value, double factor, const RunView& run,
                      const std::string& why) {
  return number_cell(table_, value, factor, run, why);
}

Cell RunTable::median(const RunView& run) {
  const Estimate& seconds = *run.seconds;
  return marked(interval(1e3 * seconds.value, 1e3 * seconds.low, 1e3 * seconds.high, {run.run.id}),
                run, Marks::speed);
}

Cell RunTable::gain(const RunView& run, const RunView& over) {
  const auto percent = [](double ratio) { return 100.0 * (ratio - 1.0); };
  const Estimate ratio = ratio_of(*run.rate, *over.rate);
  Cell cell =
      estimate_cell({percent(ratio.value), percent(ratio.low), percent(ratio.high), ratio.samples},
                    {run.run.id, over.run.id});
  if (!took_turns(run.run, over.run)) mark_calls(table_, cell);
  return cell;
}

Cell RunTable::bound(const RunView& run) {
  const std::optional<RooflinePoint> point = input_.data.point(run);
  if (!point || point->bound == Bound::unknown) return missing(why_no_point(input_.data, run));
  Cell cell = words(point->bound_text());
  cell.runs.push_back(run.run.id);
  return cell;
}

}  // namespace ridgeline::report
