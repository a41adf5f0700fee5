// How fast: samples a second, iterations, latency of inference.

#include <algorithm>
#include <array>

#include "base/error.h"
#include "lab/stats/summary.h"
#include "report/exhibits/makers.h"
#include "report/exhibits/run_table.h"

namespace ridgeline::report {
namespace {

bool any_speed(const RunView& run) {
  return run.rate.has_value() && !is_profile(run) && !is_inference(run);
}

bool has_samples(const RunView& run) {
  return run.seconds && !is_training(run) && !is_profile(run);
}

bool is_tested(const RunView& run) { return is_training(run) && last_tested(run) != nullptr; }

// Of the run itself, or of the training that its steps belong to.
Cell accuracy_cell(const Data& data, Table& table, const RunView& run,
                   const Trainings::Found& training) {
  if (training.run == nullptr) {
    return missing(table, "no training of this network at this batch by this executor is shown");
  }
  const EpochRecord& last = *last_tested(*training.run);
  Cell cell = number(100.0 * *last.test_accuracy, {training.run->run.id});
  mark_as(data, table, cell, *training.run, Marks::accuracy);
  // One row must not mix two runs without saying so.
  if (training.run != &run) {
    const bool full = training.run->run.work.full_batch;
    const char* passes = full ? "iterations" : last.epoch == 1 ? "epoch" : "epochs";
    cell.notes.push_back(
        note_index(table, fmt::format("accuracy of another run: {} {} of training, {}", last.epoch,
                                      passes, training.name)));
  }
  return cell;
}

}  // namespace

Tables make_throughput(const ExhibitInput& input) {
  // A training whose steps were measured better is there for its accuracy alone.
  const Runs all = chosen(input.runs, any_speed), runs = without_trainings(all);
  if (runs.empty()) return {};
  const Heads heads = heads_of(input.data, runs, {"model", "batch", "machine", "executor"});
  Table table = begin_table(input, "", "Throughput by network and executor", heads);
  table.caption += fmt::format(
      " Samples a second from the median iteration with its 95% interval (over blocks; "
      "of trainings over the epochs after the first); {}. On a graphics processor iterations that "
      "are queued, as in training, count for the throughput, and iterations that are waited for "
      "one by one for the time of one.",
      samples_text(runs));
  const Runs tested = only(all, is_tested);
  const bool trained = !tested.empty();
  const Trainings trainings(input.data, tested);
  table.columns.push_back({"throughput", "img/s", true, "Samples a second, median and interval"});
  table.columns.push_back({"iteration", "ms", true, "Median wall time of one iteration"});
  if (trained) {
    table.columns.push_back({"Acc@1", "%", true, "Test accuracy after the last epoch"});
  }
  table.columns.push_back(
      {"achieved", "GFLOP/s", true, "Algorithmic FLOPs of training over the time they took"});
  table.columns.push_back(
      {"of the roof", "%", true, "Least time at the measured ceilings over the measured time"});
  table.columns.push_back({"bound by", "", false, "What keeps it from being faster"});
  for (const RunView* run : runs) {
    std::vector<Cell> row = begin_row(input.data, heads, *run);
    row.push_back(rate_cell(input.data, table, *run));
    row.push_back(milliseconds_cell(table, *run));
    if (trained) row.push_back(accuracy_cell(input.data, table, *run, trainings.of(*run)));
    row.push_back(flops_cell(table, *run, 1e-9));
    row.push_back(efficiency_cell(input.data, table, *run));
    row.push_back(bound_cell(input.data, table, *run));
    table.rows.push_back(std::move(row));
  }
  return {table};
}

Tables make_iterations(const ExhibitInput& input) {
  const Runs runs = chosen(input.runs, has_samples);
  if (runs.empty()) return {};
  const Heads heads = heads_of(input.data, runs, {"model", "batch", "executor"});
  Table table = begin_table(input, "", "Times of the iterations", heads);
  table.caption +=
      " Wall time of every measured iteration, each waited for; none is left out. Warm-up and the "
      "first iteration are not among them.";
  for (TableColumn column :
       std::vector<TableColumn>{{"count", "", true, "Measured iterations"},
                                {"mean", "ms", true, "Of all measured iterations"},
                                {"deviation", "ms", true, "Standard deviation"},
                                {"min", "ms", true, "The fastest iteration"},
                                {"median", "ms", true, "With its 95% interval, over blocks"},
                                {"max", "ms", true, "The slowest iteration"},
                                {"deviation / mean", "%", true, "How much iterations scatter"}}) {
    table.columns.push_back(std::move(column));
  }
  for (const RunView* run : runs) {
    std::vector<double> seconds;
    for (const Sample& sample : input.data.store().samples(run->run.id)) {
      if (sample.kind == SampleKind::measured) seconds.push_back(sample.wall_seconds);
    }
    if (seconds.empty()) continue;
    const Summary summary = summarise(seconds);
    const std::vector<RunId> id = {run->run.id};
    std::vector<Cell> row = begin_row(input.data, heads, *run);
    row.push_back(count_cell(summary.count, id));
    row.push_back(number(1e3 * summary.mean, id));
    if (summary.count > 1) {
      row.push_back(number(1e3 * summary.deviation, id));
    } else {
      row.push_back(missing(table, "one iteration has no deviation"));
    }
    row.push_back(number(1e3 * summary.min, id));
    row.push_back(
        interval(1e3 * run->seconds->value, 1e3 * run->seconds->low, 1e3 * run->seconds->high, id));
    mark_as(input.data, table, row.back(), *run, Marks::speed);
    row.push_back(number(1e3 * summary.max, id));
    if (summary.count > 1) {
      row.push_back(number(100.0 * summary.deviation / summary.mean, id));
    } else {
      row.push_back(missing(table, "one iteration has no deviation"));
    }
    table.rows.push_back(std::move(row));
  }
  return {table};
}

Tables make_inference(const ExhibitInput& input) {
  const Runs runs = chosen(input.runs, is_inference);
  if (runs.empty()) return {};
  const Heads heads =
      heads_of(input.data, runs, {"model", "batch", "machine", "executor"}, {"kind"});
  Table table = begin_table(input, "", "Latency and throughput of inference", heads);
  table.caption += fmt::format(
      " From pixels on the device to logits, batch norms folded into the weights; no start-up is "
      "in "
      "it. Percentiles of single iterations; {}. The interval of the throughput is 95%.",
      samples_text(runs));
  struct Percentile {
    const char *name, *number;
    double percent;
  };
  constexpr std::array<Percentile, 4> kPercentiles = {{{"p50", "latency_p50_seconds", 50.0},
                                                       {"p90", "latency_p90_seconds", 90.0},
                                                       {"p95", "latency_p95_seconds", 95.0},
                                                       {"p99", "latency_p99_seconds", 99.0}}};
  for (const Percentile& each : kPercentiles) {
    table.columns.push_back(
        {each.name, "ms", true, fmt::format("{:.0f} of 100 iterations take less", each.percent)});
  }
  table.columns.push_back({"throughput", "img/s", true, "Samples a second, median and interval"});
  for (const RunView* run : runs) {
    std::vector<Cell> row = begin_row(input.data, heads, *run);
    std::vector<double> seconds;
    for (const Sample& sample : input.data.store().samples(run->run.id)) {
      if (sample.kind == SampleKind::measured) seconds.push_back(sample.wall_seconds);
    }
    for (const Percentile& each : kPercentiles) {
      std::optional<double> value = number_of(*run, each.number);
      if (!value && !seconds.empty()) value = percentile(seconds, each.percent);
      row.push_back(number_cell(table, value, 1e3, *run, "no iteration of this run was measured"));
      // Beyond the slowest sample nothing was seen.
      const double beyond = static_cast<double>(seconds.size()) * (1.0 - each.percent / 100.0);
      if (value && beyond < 1.0) {
        row.back().notes.push_back(note_index(
            table, "fewer samples than the percentile needs: it lies between the two slowest"));
      }
    }
    row.push_back(rate_cell(input.data, table, *run));
    table.rows.push_back(std::move(row));
  }
  return {table};
}

}  // namespace ridgeline::report
