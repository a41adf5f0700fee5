// How often does a comparison err? The same training step is measured twice, as two candidates that
// take turns as those of 'ridgeline bench' do, and the verdict is asked for: "faster" or "slower"
// is then a false alarm. In a second series B spins after each step, for a share of the time that
// steps take: that must be found.
//
//   aa_comparisons [COMPARISONS [SLOW_DOWN [SECONDS [BATCH]]]]     default 100 0.05 4 64
//
// SECONDS are those of one comparison. bench/aa_comparisons.py runs it and keeps the table.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "analysis/compare/verdict.h"
#include "analysis/stats/summary.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/processor_time.h"
#include "data/synthetic.h"
#include "devices/device.h"
#include "measure/iterations/blocks.h"
#include "measure/iterations/quiet.h"
#include "train/step_runner.h"

namespace ridgeline {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWarmup = 20;

struct Setup {
  int comparisons = 100;
  double slow_down = 0.05;
  double seconds = 4.0;
  std::int64_t batch = 64;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// mnist_cnn on the CPU, a batch in place.
class Candidate {
 public:
  Candidate(Device& device, const StepSpec& step, const PlanRequest& request, const Dataset& data)
      : batch_(step.batch), runner_(device, request) {
    plan_ = runner_.add_training(step);
    runner_.prepare(0);
    const auto rows = static_cast<std::size_t>(batch_);
    std::vector<std::int32_t> numbers(rows);
    std::iota(numbers.begin(), numbers.end(), 0);
    Batch first;
    first.pixels = std::span(data.pixels).first(rows * data.sample_bytes());
    first.labels = std::span(data.labels).first(rows);
    first.samples = numbers;
    first.rows = batch_;
    runner_.write_batch(first);
  }

  // One step, and then for a share of the time that steps take now nothing useful. Now: the median
  // of the last ones, since a share of one that was interrupted would be another kind of slow-down.
  double step(double spin_share) {
    const Clock::time_point start = Clock::now();
    Session& session = runner_.session();
    session.step_state() = {.learning_rate = 0.0,
                            .optimizer_step = done_ + 1,
                            .seed = 0,
                            .random_step = done_,
                            .valid_rows = batch_};
    session.run(plan_);
    ++done_;
    const double seconds = seconds_since(start);
    if (spin_share == 0.0) return seconds;
    last_.push_back(seconds);
    if (last_.size() > kLast) last_.erase(last_.begin());
    const double enough = seconds + spin_share * median_of(last_);
    // On all threads, as the step has it: one that sleeps would lose its core to other programs.
    parallel([&](int, int) {
      while (seconds_since(start) < enough) continue;
    });
    return seconds_since(start);
  }

 private:
  static constexpr std::size_t kLast = 15;
  std::int64_t batch_, done_ = 0;
  std::vector<double> last_;  // steps without what comes after them
  StepRunner runner_;
  Session::PlanId plan_ = 0;
};

struct Counts {
  int faster = 0, slower = 0, same = 0, undecided = 0, missed = 0;
  std::vector<double> ratios, widths, medians;
};

// One comparison: both candidates made anew, warmed up, then blocks in random order, as bench does.
Comparison compare_once(Device& device, const StepSpec& step, const PlanRequest& request,
                        const Dataset& data, const Setup& setup, double slow_down,
                        std::uint64_t seed) {
  Candidate a(device, step, request, data), b(device, step, request, data);
  std::vector<double> warm;
  for (int i = 0; i < kWarmup; ++i) {
    warm.push_back(a.step(0.0));
    (void)b.step(slow_down);
  }
  const std::int64_t turn = turn_length(median_of(std::span(warm).last(5)), kSharedTurnSeconds);
  RunSeries series_a, series_b;
  const BlockOrder orders(2, seed);
  const Clock::time_point start = Clock::now();
  for (std::int64_t block = 0; seconds_since(start) < setup.seconds; ++block) {
    for (const std::size_t place : orders.order(block)) {
      Candidate& candidate = place == 0 ? a : b;
      RunSeries& series = place == 0 ? series_a : series_b;
      const double share = place == 0 ? 0.0 : slow_down;
      (void)wait_until_quiet(processor_seconds);
      (void)candidate.step(share);  // the other one has used the caches
      for (std::int64_t i = 0; i < turn; ++i) {
        series.at_seconds.push_back(seconds_since(start));
        series.seconds.push_back(candidate.step(share));
        series.turn.push_back(block);
        series.process.push_back(0);
      }
    }
  }
  return compare(series_a, series_b, {.side_by_side = true});
}

void add(const Comparison& result, double truth, Counts& counts) {
  counts.faster += result.verdict == Verdict::faster ? 1 : 0;
  counts.slower += result.verdict == Verdict::slower ? 1 : 0;
  counts.same += result.verdict == Verdict::same ? 1 : 0;
  counts.undecided += result.verdict == Verdict::undecided ? 1 : 0;
  counts.missed += truth < result.low || truth > result.high ? 1 : 0;
  counts.ratios.push_back(result.ratio);
  counts.widths.push_back((result.high - result.low) / result.ratio);
  counts.medians.push_back(result.median_b / result.median_a);
}

std::string range_text(const std::vector<double>& ratios) {
  const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
  return fmt::format("{:.4f} ({:.4f} to {:.4f})", median_of(ratios), *least, *most);
}

void print_row(const std::string& name, const Counts& counts) {
  fmt::print("| {} | {} | {} | {} | {} | {} | {} | {} | {:.2f}% |\n", name, counts.faster,
             counts.slower, counts.same, counts.undecided, counts.missed, range_text(counts.ratios),
             range_text(counts.medians), 100.0 * median_of(counts.widths));
}

int run(int argc, char** argv) {
  Setup setup;
  if (argc > 1) setup.comparisons = std::stoi(argv[1]);
  if (argc > 2) setup.slow_down = std::stod(argv[2]);
  if (argc > 3) setup.seconds = std::stod(argv[3]);
  if (argc > 4) setup.batch = std::stoll(argv[4]);
  if (setup.comparisons < 1 || !(setup.seconds > 0.0) || setup.batch < 1 || setup.slow_down < 0.0) {
    std::fprintf(stderr, "usage: aa_comparisons [COMPARISONS [SLOW_DOWN [SECONDS [BATCH]]]]\n");
    return 2;
  }
  const std::unique_ptr<Device> device = make_device("cpu");
  StepSpec step;
  step.model.name = "mnist_cnn";
  step.batch = setup.batch;
  PlanRequest request;
  request.backend = "native";
  const Dataset data = make_synthetic({.channels = step.model.channels,
                                       .height = step.model.height,
                                       .width = step.model.width,
                                       .classes = static_cast<std::int32_t>(step.model.classes),
                                       .count = setup.batch,
                                       .test_count = 1,
                                       .seed = 0})
                           .train;
  Counts alike, slowed;
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < setup.comparisons; ++i) {
    const auto seed = static_cast<std::uint64_t>(2 * i);
    add(compare_once(*device, step, request, data, setup, 0.0, seed), 1.0, alike);
    add(compare_once(*device, step, request, data, setup, setup.slow_down, seed + 1),
        1.0 + setup.slow_down, slowed);
    std::fprintf(stderr, "\r%d of %d", i + 1, setup.comparisons);
  }
  std::fprintf(stderr, "\n");
  fmt::print(
      "mnist_cnn, native, batch {}, {} threads; {:.4g} s for each comparison, in turns of {:.0f} "
      "ms; "
      "{:.0f} s in all\n\n",
      setup.batch, thread_count(), setup.seconds, 1e3 * kSharedTurnSeconds, seconds_since(start));
  fmt::print(
      "| {} comparisons each | faster | slower | same | undecided | interval misses the "
      "truth | ratio: median (range) | ratio of the medians | interval's width, median |\n",
      setup.comparisons);
  fmt::print("|---|---|---|---|---|---|---|---|---|\n");
  print_row("A against A", alike);
  print_row(fmt::format("A against A + {:.4g}%", 100.0 * setup.slow_down), slowed);
  return 0;
}

}  // namespace
}  // namespace ridgeline

int main(int argc, char** argv) {
  try {
    return ridgeline::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "aa_comparisons: %s\n", error.what());
    return 1;
  }
}
