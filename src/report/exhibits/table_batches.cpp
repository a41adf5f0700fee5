// What the batch does.

#include <algorithm>

#include "base/error.h"
#include "report/exhibits/makers.h"
#include "report/exhibits/run_table.h"

namespace ridgeline::report {
namespace {

bool any_speed(const RunView& run) { return run.rate.has_value() && !is_profile(run); }

Cell sensor_cell(const Data& data, Table& table, const RunView& run, const char* name,
                 double factor, const std::string& why) {
  const std::optional<SensorSummary> sensor = data.sensor(run, name);
  return number_cell(table, sensor ? std::optional(sensor->mean) : std::nullopt, factor, run, why);
}

Cell memory_cell(const Data& data, Table& table, const RunView& run) {
  const auto bytes = on_gpu(run) ? data.device_memory_bytes(run) : data.process_memory_bytes(run);
  return number_cell(table, bytes, 1e-6, run, "the memory of this run was not measured");
}

}  // namespace

Tables make_batch_sweep(const ExhibitInput& input) {
  const std::vector<Runs> series = batch_series(chosen(input.runs, any_speed));
  if (series.empty()) return {};
  const Runs runs = flat(series);
  const bool gpu = !only(runs, on_gpu).empty();
  Heads heads = heads_of(input.data, runs, {"model", "machine", "executor", "batch"});
  put_last(heads, "batch");
  Table table = begin_table(input, "", "Effect of the batch", heads);
  table.caption += fmt::format(
      " Medians with 95% intervals; {}. Utilisation is the mean of all readings during the run. "
      "Memory: of the process on a processor, on the device on a graphics processor; 10^6 bytes.",
      samples_text(runs));
  table.columns.push_back({"throughput", "img/s", true, "Samples a second, median and interval"});
  table.columns.push_back({"iteration", "ms", true, "Median wall time of one iteration"});
  table.columns.push_back({"achieved", "GFLOP/s", true, "Algorithmic FLOPs over time"});
  table.columns.push_back(
      {"of the roof", "%", true, "Least time at the measured ceilings over the measured time"});
  table.columns.push_back({"CPU", "%", true, "Mean utilisation of all processors of the machine"});
  if (gpu) table.columns.push_back({"GPU", "%", true, "Mean share of time with a kernel running"});
  table.columns.push_back({"memory", "MB", true, "The most it had"});
  table.columns.push_back({"bound by", "", false, "What keeps it from being faster"});
  for (const RunView* run : runs) {
    std::vector<Cell> row = begin_row(input.data, heads, *run);
    row.push_back(rate_cell(input.data, table, *run));
    row.push_back(milliseconds_cell(table, *run));
    row.push_back(flops_cell(table, *run, 1e-9));
    row.push_back(efficiency_cell(input.data, table, *run));
    row.push_back(sensor_cell(input.data, table, *run, "cpu_utilisation_percent", 1.0,
                              "sensors were not read during this run"));
    if (gpu) {
      row.push_back(sensor_cell(input.data, table, *run, "gpu_utilisation_percent", 1.0,
                                on_gpu(*run) ? "sensors of the device were not read during this run"
                                             : "it ran on a processor"));
    }
    row.push_back(memory_cell(input.data, table, *run));
    row.push_back(bound_cell(input.data, table, *run));
    table.rows.push_back(std::move(row));
  }
  return {table};
}

Tables make_batch_gains(const ExhibitInput& input) {
  const std::vector<Runs> series = batch_series(chosen(input.runs, any_speed));
  if (series.empty()) return {};
  const Runs runs = flat(series);
  Heads heads = heads_of(input.data, runs, {"model", "machine", "executor", "batch"});
  put_last(heads, "batch");
  Table table = begin_table(input, "", "What larger batches gain", heads);
  table.caption += fmt::format(
      " Throughput over that of the smallest batch of the same row group; the intervals are made "
      "from those of both throughputs (95%, {}).",
      samples_text(runs));
  table.columns.push_back({"throughput", "img/s", true, "Samples a second, median and interval"});
  table.columns.push_back({"over the smallest", "x", true, "Throughput over the smallest batch's"});
  table.columns.push_back({"over the one before", "x", true, "Throughput over the next smaller's"});
  table.columns.push_back({"gain", "", false, "Whether the interval shows a gain or a loss"});
  for (const Runs& one : series) {
    for (std::size_t i = 0; i < one.size(); ++i) {
      const RunView& run = *one[i];
      std::vector<Cell> row = begin_row(input.data, heads, run);
      row.push_back(rate_cell(input.data, table, run));
      if (i == 0) {
        row.push_back(words("1 (the smallest)"));
        row.back().value = 1.0;
        row.push_back(words("–"));
        row.push_back(words("–"));
        table.rows.push_back(std::move(row));
        continue;
      }
      row.push_back(ratio_cell(table, run, *one.front()));
      row.push_back(ratio_cell(table, run, *one[i - 1]));
      const Estimate all = ratio_of(*run.rate, *one.front()->rate);
      row.push_back(words(all.samples < 2  ? "undecided"
                          : all.low > 1.0  ? "faster"
                          : all.high < 1.0 ? "slower"
                                           : "undecided"));
      table.rows.push_back(std::move(row));
    }
  }
  return {table};
}

}  // namespace ridgeline::report
