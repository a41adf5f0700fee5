// How fast: samples a second, iterations, latency of inference.

#include <algorithm>

#include "analysis/stats/summary.h"
#include "base/error.h"
#include "report/exhibits/run_table.h"

namespace ridgeline::report {
namespace {

bool has_step_rate(const RunView& run) {
  return run.rate.has_value() && !is_profile(run) && !is_inference(run);
}

bool has_samples(const RunView& run) {
  return run.seconds && !is_training(run) && !is_profile(run);
}

bool is_tested(const RunView& run) { return is_training(run) && last_tested(run) != nullptr; }

// Of the run itself, or of the training that its steps belong to.
Cell accuracy_cell(RunTable& table, const RunView& run, const Trainings::Found& training) {
  if (training.run == nullptr) {
    return table.missing("no training of this network at this batch by this executor is shown");
  }
  const EpochRecord& last = *last_tested(*training.run);
  Cell cell = table.marked(number(100.0 * *last.test_accuracy, {training.run->run.id}),
                           *training.run, Marks::accuracy);
  if (training.run == &run) return cell;
  // One row must not mix two runs without saying so.
  const bool full = training.run->run.work.full_batch;
  const char* passes = full ? "iterations" : last.epoch == 1 ? "epoch" : "epochs";
  return table.noted(std::move(cell), fmt::format("accuracy of another run: {} {} of training, {}",
                                                  last.epoch, passes, training.name));
}

// Wall times of all measured iterations.
std::vector<double> measured_seconds(const Data& data, const RunView& run) {
  std::vector<double> seconds;
  for (const Sample& sample : data.store().samples(run.run.id)) {
    if (sample.kind == SampleKind::measured) seconds.push_back(sample.wall_seconds);
  }
  return seconds;
}

}  // namespace

Tables make_throughput(const ExhibitInput& input) {
  // A training whose steps were measured better is there for its accuracy alone.
  const Runs all = chosen(input.runs, has_step_rate), runs = without_trainings(all);
  RunTable table(
      input, runs,
      {.title = "Throughput by network and executor",
       .caption = fmt::format(
           " Samples a second from the median iteration with its 95% interval (over blocks; of "
           "trainings over the epochs after the first); {}. On a graphics processor iterations "
           "that are queued, as in training, count for the throughput, and iterations that are "
           "waited for one by one for the time of one.",
           samples_text(runs))});
  const Runs tested = only(all, is_tested);
  const Trainings trainings(input.data, tested);
  table.throughput();
  table.iteration();
  if (!tested.empty()) {
    table.column({"Acc@1", "%", true, "Test accuracy after the last epoch"},
                 [&](const RunView& run) { return accuracy_cell(table, run, trainings.of(run)); });
  }
  table.achieved("Algorithmic FLOPs of training over the time they took");
  table.of_the_roof();
  table.bound_by();
  return table.made();
}

Tables make_iterations(const ExhibitInput& input) {
  const Runs runs = chosen(input.runs, has_samples);
  const auto seconds =
      once_per_run([&](const RunView& run) { return measured_seconds(input.data, run); });
  const auto summary = once_per_run([&](const RunView& run) { return summarise(seconds(run)); });
  RunTable table(input, runs,
                 {.title = "Times of the iterations",
                  .caption = " Wall time of every measured iteration, each waited for; none is "
                             "left out. Warm-up and the first iteration are not among them.",
                  .always = {"model", "batch", "executor"}});
  const auto milliseconds = [&](const char* title, double Summary::*value, const char* meaning) {
    table.numbers(
        {title, "ms", true, meaning},
        [&, value](const RunView& run) { return summary(run).*value; }, 1e3, "");
  };
  const auto of_several = [&](const RunView& run, double value) {
    return summary(run).count > 1 ? number(value, {run.run.id})
                                  : table.missing("one iteration has no deviation");
  };
  table.column({"count", "", true, "Measured iterations"},
               [&](const RunView& run) { return count_cell(summary(run).count, {run.run.id}); });
  milliseconds("mean", &Summary::mean, "Of all measured iterations");
  table.column({"deviation", "ms", true, "Standard deviation"},
               [&](const RunView& run) { return of_several(run, 1e3 * summary(run).deviation); });
  milliseconds("min", &Summary::min, "The fastest iteration");
  table.column({"median", "ms", true, "With its 95% interval, over blocks"},
               [&](const RunView& run) { return table.median(run); });
  milliseconds("max", &Summary::max, "The slowest iteration");
  table.column({"deviation / mean", "%", true, "How much iterations scatter"},
               [&](const RunView& run) {
                 return of_several(run, 100.0 * summary(run).deviation / summary(run).mean);
               });
  return table.made_of(only(runs, [&](const RunView& run) { return !seconds(run).empty(); }));
}

Tables make_inference(const ExhibitInput& input) {
  const Runs runs = chosen(input.runs, is_inference);
  const auto seconds =
      once_per_run([&](const RunView& run) { return measured_seconds(input.data, run); });
  RunTable table(input, runs,
                 {.title = "Latency and throughput of inference",
                  .caption = fmt::format(
                      " From pixels on the device to logits, batch norms folded into the weights; "
                      "no start-up is in it. Percentiles of single iterations; {}. The interval of "
                      "the throughput is 95%.",
                      samples_text(runs)),
                  .never = {"kind"}});
  for (const int percent : {50, 90, 95, 99}) {
    table.column(
        {fmt::format("p{}", percent), "ms", true,
         fmt::format("{} of 100 iterations take less", percent)},
        [&, percent](const RunView& run) {
          std::optional<double> value = number_of(run, fmt::format("latency_p{}_seconds", percent));
          if (!value && !seconds(run).empty()) value = percentile(seconds(run), percent);
          Cell cell = table.number(value, 1e3, run, "no iteration of this run was measured");
          // Beyond the slowest sample nothing was seen.
          const double beyond = static_cast<double>(seconds(run).size()) * (1.0 - percent / 100.0);
          if (!value || beyond >= 1.0) return cell;
          return table.noted(
              std::move(cell),
              "fewer samples than the percentile needs: it lies between the two slowest");
        });
  }
  table.throughput();
  return table.made();
}

}  // namespace ridgeline::report
