// One axis at a time: runs that are equal in all but one thing.

#include <algorithm>

#include "base/error.h"
#include "report/exhibits/run_table.h"
#include "report/exhibits/sweep.h"

namespace ridgeline::report {
namespace {

bool any_result(const RunView& run) { return run.rate.has_value() && !is_profile(run); }

// The axis has a column of its own; so have options of the network where others differ too.
FieldNames told_of(const Sweep& sweep) {
  const bool others =
      !sweep.axis.option.empty() && !sweep.other_options(*sweep.series[0][0]).empty();
  return others ? FieldNames{} : sweep.axis.fields();
}

Table table_along(const ExhibitInput& input, const Sweep& sweep) {
  const Runs runs = flat(sweep.series);
  const std::string& name = sweep.axis.name;
  FieldNames always = {"model", "machine", "executor"};
  if (sweep.axis.field == "model") always.erase(always.begin());
  RunTable table(
      input, runs,
      {.title = "Sweep",
       .caption = fmt::format(
           " Rows of one executor that follow each other differ in the {} alone{}. Throughput is a "
           "median with its 95% interval ({}); the gain is over the first row of the same "
           "executor.",
           name,
           sweep.axis.field == "optimizer" ? ", and in the learning rate that is usual for it" : "",
           samples_text(runs)),
       .always = always,
       .never = told_of(sweep),
       .part = name});
  table.column({name, "", sweep.numbers, "What is varied"}, [&](const RunView& run) {
    return Cell{.text = sweep.axis.text(run),
                .value = sweep.numbers ? sweep.axis.number(run) : std::nullopt};
  });
  table.throughput();
  table.column({"gain", "%", true, "Throughput above that of the first value"},
               [&](const RunView& run) {
                 const RunView& first = *group_of(sweep.series, run).front();
                 return &run == &first ? words("–") : table.gain(run, first);
               });
  table.achieved();
  if (!only(runs, [](const RunView& run) { return !run.epochs.empty(); }).empty()) {
    table.final_loss();
    table.final_accuracy();
    table.column({"max Acc@1", "%", true, "Highest test accuracy of all epochs"},
                 [&](const RunView& run) {
                   return table.number(number_of(run, "best_test_accuracy"), 100.0, run,
                                       run.epochs.empty() ? kNoTraining : kUntested);
                 });
  }
  return table.made().front();
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
