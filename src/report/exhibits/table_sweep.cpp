// One axis at a time: runs that are equal in all but one thing.

#include <algorithm>

#include "base/error.h"
#include "report/exhibits/makers.h"
#include "report/exhibits/run_table.h"
#include "report/exhibits/sweep.h"

namespace ridgeline::report {
namespace {

bool any_result(const RunView& run) { return run.rate.has_value() && !is_profile(run); }

// The axis has a column of its own; so have options of the network where others differ too.
Heads heads_along(const Data& data, const Runs& runs, const Sweep& sweep) {
  FieldNames told = sweep.axis.fields();
  if (!sweep.axis.option.empty() && !sweep.other_options(*runs[0]).empty()) told.clear();
  if (sweep.axis.field == "model") return heads_of(data, runs, {"machine", "executor"}, told);
  return heads_of(data, runs, {"model", "machine", "executor"}, told);
}

// What was learnt.
void add_results(const ExhibitInput& input, Table& table, std::vector<Cell>& row,
                 const RunView& run) {
  const bool has = !run.epochs.empty();
  const std::string why = has ? "the network was not tested" : "not a training: nothing was learnt";
  row.push_back(has ? loss_cell(table, run) : missing(table, why));
  const EpochRecord* last = last_tested(run);
  row.push_back(
      number_cell(table, last != nullptr ? last->test_accuracy : std::nullopt, 100.0, run, why));
  if (last != nullptr) mark_as(input.data, table, row.back(), run, Marks::accuracy);
  row.push_back(number_cell(table, number_of(run, "best_test_accuracy"), 100.0, run, why));
}

Table table_along(const ExhibitInput& input, const Sweep& sweep) {
  const Runs runs = flat(sweep.series);
  const std::string& name = sweep.axis.name;
  const Heads heads = heads_along(input.data, runs, sweep);
  Table table = begin_table(input, name, "Sweep", heads);
  table.caption += fmt::format(
      " Rows of one executor that follow each other differ in the {} alone{}. Throughput is a "
      "median with its 95% interval ({}); its ratio is to the first row of the same executor.",
      name,
      sweep.axis.field == "optimizer" ? ", and in the learning rate that is usual for it" : "",
      samples_text(runs));
  const bool trained = std::any_of(runs.begin(), runs.end(),
                                   [](const RunView* run) { return !run->epochs.empty(); });
  table.columns.push_back({name, "", sweep.numbers, "What is varied"});
  table.columns.push_back({"throughput", "img/s", true, "Samples a second, median and interval"});
  table.columns.push_back({"ratio", "x", true, "Throughput over that of the first value"});
  table.columns.push_back({"achieved", "GFLOP/s", true, "Algorithmic FLOPs over time"});
  if (trained) {
    table.columns.push_back({"final loss", "", true, "Mean training loss of the last epoch"});
    table.columns.push_back({"final Acc@1", "%", true, "Test accuracy after the last epoch"});
    table.columns.push_back({"max Acc@1", "%", true, "Highest test accuracy of all epochs"});
  }
  for (const Runs& series : sweep.series) {
    for (const RunView* run : series) {
      std::vector<Cell> row = begin_row(input.data, heads, *run);
      row.push_back(words(sweep.axis.text(*run)));
      if (sweep.numbers) row.back().value = sweep.axis.number(*run);
      row.push_back(rate_cell(input.data, table, *run));
      if (run == series.front()) {
        row.push_back(words("1"));
        row.back().value = 1.0;
      } else {
        row.push_back(ratio_cell(table, *run, *series.front()));
      }
      row.push_back(flops_cell(table, *run, 1e-9));
      if (trained) add_results(input, table, row, *run);
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

}  // namespace

Tables make_sweep(const ExhibitInput& input) {
  Tables tables;
  for (const Sweep& sweep : sweeps_of(chosen(input.runs, any_result))) {
    tables.push_back(table_along(input, sweep));
  }
  return tables;
}

}  // namespace ridgeline::report
