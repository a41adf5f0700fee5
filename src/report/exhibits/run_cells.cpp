// Cells that several tables have.

#include "base/error.h"
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
}

void mark(const Data& data, Table& table, Cell& cell, const RunView& run) {
  mark_as(data, table, cell, run, Marks::all);
}

Cell number_cell(Table& table, const std::optional<double>& value, double factor,
                 const RunView& run, const std::string& why) {
  return value ? number(*value * factor, {run.run.id}) : missing(table, why);
}

Cell rate_cell(const Data& data, Table& table, const RunView& run) {
  if (!run.rate) return missing(table, "no iteration of this run was measured");
  Cell cell = interval(run.rate->value, run.rate->low, run.rate->high, {run.run.id});
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
