// What the batch does.

#include <algorithm>

#include "base/error.h"
#include "report/exhibits/run_table.h"

namespace ridgeline::report {
namespace {

bool has_rate(const RunView& run) { return run.rate.has_value() && !is_profile(run); }

// A table whose rows are series of batches, each from the smallest on.
RunTable::Begin of_batches(std::string title, std::string caption) {
  return {.title = std::move(title),
          .caption = std::move(caption),
          .always = {"model", "machine", "executor", "batch"},
          .last = "batch"};
}

}  // namespace

Tables make_batch_sweep(const ExhibitInput& input) {
  const Data& data = input.data;
  const Runs runs = flat(batch_series(chosen(input.runs, has_rate)));
  RunTable table(
      input, runs,
      of_batches("Effect of the batch",
                 fmt::format(" Medians with 95% intervals; {}. Utilisation is the mean of all "
                             "readings during the run. Memory: of the process on a processor, on "
                             "the device on a graphics processor; 10^6 bytes.",
                             samples_text(runs))));
  const auto mean_of = [&](const RunView& run, const char* sensor, const char* why) {
    const std::optional<SensorSummary> read = data.sensor(run, sensor);
    return table.number(read ? std::optional(read->mean) : std::nullopt, 1.0, run, why);
  };
  table.throughput();
  table.iteration();
  table.achieved();
  table.of_the_roof();
  table.column({"CPU", "%", true, "Mean utilisation of all processors of the machine"},
               [&](const RunView& run) {
                 return mean_of(run, "cpu_utilisation_percent",
                                "sensors were not read during this run");
               });
  if (!only(runs, on_gpu).empty()) {
    table.column(
        {"GPU", "%", true, "Mean share of time with a kernel running"}, [&](const RunView& run) {
          return mean_of(run, "gpu_utilisation_percent",
                         on_gpu(run) ? "sensors of the device were not read during this run"
                                     : "it ran on a processor");
        });
  }
  table.numbers(
      {"memory", "MB", true, "The most it had"},
      [&](const RunView& run) {
        return on_gpu(run) ? data.device_memory_bytes(run) : data.process_memory_bytes(run);
      },
      1e-6, "the memory of this run was not measured");
  table.bound_by();
  return table.made();
}

Tables make_batch_gains(const ExhibitInput& input) {
  const std::vector<Runs> series = batch_series(chosen(input.runs, has_rate));
  const Runs runs = flat(series);
  RunTable table(
      input, runs,
      of_batches(
          "What larger batches gain",
          fmt::format(" Gains are in throughput, over the smallest batch of the same row group "
                      "and over the row before; less than 0 is a loss. Their intervals are "
                      "made from those of both throughputs (95%, {}).",
                      samples_text(runs))));
  const auto smallest = [&](const RunView& run) { return group_of(series, run).front(); };
  table.throughput();
  table.column({"over the smallest", "%", true, "Throughput above the smallest batch's"},
               [&](const RunView& run) {
                 if (smallest(run) == &run) return words("the smallest");
                 return table.gain(run, *smallest(run));
               });
  table.column({"over the one before", "%", true, "Throughput above the next smaller's"},
               [&](const RunView& run) {
                 if (smallest(run) == &run) return words("–");
                 const Runs& group = group_of(series, run);
                 return table.gain(run, **std::prev(std::ranges::find(group, &run)));
               });
  table.column({"gain", "", false, "Whether the interval shows a gain or a loss"},
               [&](const RunView& run) {
                 if (smallest(run) == &run) return words("–");
                 const Estimate all = ratio_of(*run.rate, *smallest(run)->rate);
                 return words(all.samples < 2  ? "undecided"
                              : all.low > 1.0  ? "faster"
                              : all.high < 1.0 ? "slower"
                                               : "undecided");
               });
  return table.made();
}

}  // namespace ridgeline::report
