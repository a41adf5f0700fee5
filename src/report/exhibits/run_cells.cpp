// Cells that several tables have.

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "report/exhibits/run_table.h"
#include "report/flags.h"

namespace ridgeline::report {
namespace {

bool concerns(const std::string& flag, Marks marks) {
  if (marks == Marks::all) return true;
  const bool accuracy = flag == kAtChance || flag == kNotANumber;
  const bool both = flag == kSubstituted || flag == kFrozen || flag == "parity";
  return both || accuracy == (marks == Marks::accuracy);
}

}  // namespace

void mark_as(const Data& data, Table& table, Cell& cell, const RunView& run, Marks marks) {
  for (const Finding& flag : flags_of(data, run)) {
    if (!concerns(flag.name, marks)) continue;
    const std::size_t note = note_index(table, footnote_of(flag));
    if (std::find(cell.notes.begin(), cell.notes.end(), note) == cell.notes.end()) {
      cell.notes.push_back(note);
    }
  }
  std::sort(cell.notes.begin(), cell.notes.end());
}

void mark(const Data& data, Table& table, Cell& cell, const RunView& run) {
  mark_as(data, table, cell, run, Marks::all);
}

void mark_calls(Table& table, Cell& cell) { cell.notes.push_back(note_index(table, kCallsNote)); }

Cell ratio_cell(Table& table, const RunView& run, const RunView& over) {
  const Estimate ratio = ratio_of(*run.rate, *over.rate);
  const std::vector<RunId> runs = {run.run.id, over.run.id};
  Cell cell = ratio.samples < 2 ? number(ratio.value, runs)
                                : interval(ratio.value, ratio.low, ratio.high, runs);
  if (!took_turns(run.run, over.run)) mark_calls(table, cell);
  return cell;
}

Cell number_cell(Table& table, const std::optional<double>& value, double factor,
                 const RunView& run, const std::string& why) {
  return value ? number(*value * factor, {run.run.id}) : missing(table, why);
}

Cell count_cell(std::int64_t count, std::vector<RunId> runs) {
  Cell cell = number(static_cast<double>(count), std::move(runs));
  cell.text = count_text(count);
  return cell;
}

Cell rate_cell(const Data& data, Table& table, const RunView& run) {
  if (!run.rate) return missing(table, "no iteration of this run was measured");
  // One sample has no interval.
  Cell cell = run.rate->samples < 2
                  ? number(run.rate->value, {run.run.id})
                  : interval(run.rate->value, run.rate->low, run.rate->high, {run.run.id});
  mark_as(data, table, cell, run, Marks::speed);
  return cell;
}

Cell milliseconds_cell(Table& table, const RunView& run) {
  return number_cell(table, run.seconds ? std::optional(run.seconds->value) : std::nullopt, 1e3,
                     run, "no iteration of this run was measured");
}

Cell flops_cell(Table& table, const RunView& run, double factor) {
  return number_cell(table, run.flops_per_second, factor, run,
                     "the FLOPs of this run's iteration are not known");
}

Cell loss_cell(Table& table, const RunView& run) {
  const double loss = run.epochs.back().train_loss;
  return std::isfinite(loss) ? number(loss, {run.run.id})
                             : missing(table, "the loss is not a number");
}

void drop_missing_columns(Table& table, std::initializer_list<std::string_view> titles) {
  for (std::size_t c = table.columns.size(); c-- > 0;) {
    if (std::find(titles.begin(), titles.end(), table.columns[c].title) == titles.end()) continue;
    const auto is_missing = [&](const std::vector<Cell>& row) {
      return !row[c].value && row[c].text == "n/a";
    };
    if (!std::all_of(table.rows.begin(), table.rows.end(), is_missing)) continue;
    const auto place = static_cast<std::ptrdiff_t>(c);
    table.columns.erase(table.columns.begin() + place);
    for (std::vector<Cell>& row : table.rows) row.erase(row.begin() + place);
  }
  // Notes that no cell has any more; a table of this kind has no notes but those of cells.
  for (std::size_t n = table.notes.size(); n-- > 0;) {
    bool used = false;
    for (const auto& row : table.rows) {
      for (const Cell& cell : row) {
        used = used || std::find(cell.notes.begin(), cell.notes.end(), n) != cell.notes.end();
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

Cell efficiency_cell(const Data& data, Table& table, const RunView& run) {
  const std::optional<RooflinePoint> point = data.point(run);
  const std::optional<double> share = point ? point->efficiency() : std::nullopt;
  return number_cell(table, share, 100.0, run, why_no_point(data, run));
}

Cell bound_cell(const Data& data, Table& table, const RunView& run) {
  const std::optional<RooflinePoint> point = data.point(run);
  if (!point || point->bound == Bound::unknown) return missing(table, why_no_point(data, run));
  Cell cell = words(point->bound_text());
  cell.runs.push_back(run.run.id);
  return cell;
}

}  // namespace ridgeline::report
