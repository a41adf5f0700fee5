// How many times as fast: pairs of runs that did the same work.

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "report/analysis/places.h"
#include "report/exhibits/run_table.h"

namespace ridgeline::report {
namespace {

bool has_seconds(const RunView& run) { return run.seconds.has_value() && !is_profile(run); }

bool same_device(const RunView& a, const RunView& b) {
  return a.machine == b.machine && a.run.executor.device == b.run.executor.device;
}

// With many executors not every pair tells something: each against the first, those of one device
// against each other, and the same one on other machines.
bool worth_showing(const Runs& group, std::size_t a, std::size_t b) {
  if (group.size() <= 3 || a == 0) return true;
  const RunView &x = *group[a], &y = *group[b];
  return same_device(x, y) || x.run.executor.backend == y.run.executor.backend;
}

std::vector<Cell> row_of(const Data& data, Table& table, const Heads& heads, const Names& names,
                         const Ratio& ratio) {
  const RunView &fast = *ratio.of, &slow = *ratio.than;
  std::vector<Cell> row = begin_row(data, heads, fast);
  row.push_back(words(names.of(fast)));
  row.push_back(words(names.of(slow)));
  row.push_back(milliseconds_cell(table, fast));
  row.push_back(milliseconds_cell(table, slow));
  Cell cell = interval(ratio.speedup, ratio.low, ratio.high, {fast.run.id, slow.run.id});
  mark_as(data, table, cell, fast, Marks::speed);
  mark_as(data, table, cell, slow, Marks::speed);
  if (!ratio.side_by_side && !ratio.floor_known) mark_calls(table, cell);
  if (!ratio.sound) cell = noted(table, std::move(cell), kRangeNote);
  if (ratio.basis == "epochs") {
    cell = noted(table, std::move(cell),
                 "by the epochs after the first: single iterations were not stored");
  }
  row.push_back(std::move(cell));
  row.push_back(words(std::string(ridgeline::name_of(ratio.verdict))));
  return row;
}

}  // namespace

Tables make_speedups(const ExhibitInput& input) {
  const Runs runs = chosen(input.runs, has_seconds);
  const std::vector<Runs> groups = by_work(runs);
  Runs alone, compared;
  for (const Runs& group : groups) {
    Runs& place = group.size() < 2 ? alone : compared;
    place.insert(place.end(), group.begin(), group.end());
  }
  if (compared.empty()) return {};
  FieldNames of_work = work_fields();
  of_work.push_back("command");
  const Heads heads = heads_of(input.data, compared, {"model", "batch"}, fields_without(of_work));
  const Names names(input.data, compared, of_work);
  Table table = begin_table(input, "", "Speed-ups between executors that did the same work", heads);
  table.caption += fmt::format(
      " Time of B over that of A, which took less, with its 99% interval. Only runs that did "
      "the same work stand in a row. A verdict needs a difference of more than 2% that the "
      "interval shows; {}.",
      samples_text(compared));
  table.columns.push_back({"A", "", false, "The one that took less time"});
  table.columns.push_back({"B", "", false, "The one that it is compared with"});
  table.columns.push_back({"A", "ms", true, "Median iteration of A, waited for"});
  table.columns.push_back({"B", "ms", true, "Median iteration of B, waited for"});
  table.columns.push_back({"speed-up", "x", true, "Time of B over time of A"});
  table.columns.push_back({"A is", "", false, "Verdict: faster, same or undecided"});
  for (const Runs& group : groups) {
    for (std::size_t a = 0; a < group.size(); ++a) {
      for (std::size_t b = a + 1; b < group.size(); ++b) {
        if (!worth_showing(group, a, b)) continue;
        const std::optional<Ratio> ratio = input.data.ratios().of(*group[b], *group[a]);
        if (!ratio) continue;
        table.rows.push_back(row_of(input.data, table, heads, names, above_one(*ratio)));
      }
    }
  }
  if (table.rows.empty()) return {};
  if (!alone.empty()) {
    const Names others(input.data, alone, {}, {"model", "batch", "executor"});
    std::vector<std::string> list;
    for (const RunView* run : alone) list.push_back(others.of(*run));
    const std::size_t most = 5, count = list.size();
    if (count > most) list.resize(most);
    (void)note_index(
        table,
        fmt::format("not shown, because no other run did the same work: {}{}", joined(list, "; "),
                    count > most ? fmt::format("; and {} more", count - most) : std::string()));
  }
  return {table};
}

}  // namespace ridgeline::report
