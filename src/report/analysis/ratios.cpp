#include "report/analysis/ratios.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "lab/compare/alike.h"
#include "lab/stats/distributions.h"
#include "lab/stats/summary.h"
#include "report/table.h"

namespace ridgeline::report {
namespace {

constexpr double kAlpha = 0.01;               // as `ridgeline compare` has it
constexpr std::size_t kMostRepetitions = 20;  // of each run, the newest: more cost time only
constexpr std::size_t kFewEpochs = 3;

// How its times came about. Iterations that were watched for a profile are slower, those of a
// training are not stored one by one; everything else measures as `bench` does.
enum class Way { iterations, training, profile };
Way way_of(const RunRecord& run) {
  if (run.command == "train") return Way::training;
  return run.command == "profile" ? Way::profile : Way::iterations;
}

// Seconds of one sample, epoch by epoch.
std::vector<double> epoch_times(const RunView& run) {
  std::vector<double> times;
  for (const EpochRecord& epoch : run.steady_epochs()) {
    times.push_back(epoch.seconds / static_cast<double>(epoch.samples));
  }
  return times;
}

struct LogTimes {
  double median = 0.0;  // of the times themselves
  VarianceComponent mean;
};

LogTimes log_times(const std::vector<double>& times) {
  std::vector<double> logs;
  for (const double time : times) logs.push_back(std::log(time));
  const double deviation = summarise(logs).deviation;
  const auto count = static_cast<double>(times.size());
  return {median_of(times), {deviation * deviation / count, count - 1.0}};
}

Ratio by_epochs(const std::vector<double>& of, const std::vector<double>& than) {
  Ratio ratio;
  ratio.basis = "epochs";
  const LogTimes fast = log_times(of), slow = log_times(than);
  ratio.speedup = slow.median / fast.median;
  if (of.size() < kFewEpochs || than.size() < kFewEpochs) {
    const auto [least_of, most_of] = std::minmax_element(of.begin(), of.end());
    const auto [least_than, most_than] = std::minmax_element(than.begin(), than.end());
    ratio.low = *least_than / *most_of;
    ratio.high = *most_than / *least_of;
    ratio.sound = false;
    ratio.verdict = verdict_of_few(than, of);
    return ratio;
  }
  const VarianceComponent parts[] = {fast.mean, slow.mean};
  const VarianceComponent total = sum_of(parts);
  const double reach =
      student_quantile(1.0 - kAlpha / 2.0, total.degrees) * std::sqrt(total.variance);
  ratio.low = ratio.speedup * std::exp(-reach);
  ratio.high = ratio.speedup * std::exp(reach);
  ratio.verdict =
      verdict_of(1.0 / ratio.speedup, 1.0 / ratio.high, 1.0 / ratio.low, VerdictOptions{}.margin);
  return ratio;
}

}  // namespace

bool comparable(const RunView& a, const RunView& b) {
  return way_of(a.run) == way_of(b.run) && a.run.work == b.run.work;
}

bool same_place(const RunView& a, const RunView& b) {
  return a.machine == b.machine && a.run.executor == b.run.executor;
}

bool in_one_call(const RunView& a, const RunView& b) {
  return !a.run.group.empty() && a.run.group == b.run.group;
}

const RunSeries& Ratios::series(const RunView& run) {
  const auto [place, fresh] = series_.try_emplace(run.run.id);
  if (fresh) place->second = run_series(data_.store().samples(run.run.id));
  return place->second;
}

std::optional<LogMedian> Ratios::median(const RunView& run) {
  const auto [place, fresh] = medians_.try_emplace(run.run.id);
  if (fresh && !series(run).seconds.empty()) place->second = log_median(series(run));
  return place->second;
}

// The run and its repetitions in other calls, without `other`: what is compared cannot tell how
// much repetitions differ.
std::vector<LogMedian> Ratios::repetitions(const RunView& run, const RunView& other) {
  std::vector<LogMedian> medians;
  std::set<std::string> calls;
  const std::vector<RunView>& all = data_.runs();
  for (auto found = all.rbegin(); found != all.rend(); ++found) {
    if (medians.size() >= kMostRepetitions) break;
    if (found->run.id == other.run.id || way_of(found->run) != way_of(run.run) ||
        !repeats(found->run, run.run)) {
      continue;
    }
    // Of one call one run: those side by side share the machine's mood.
    if (!found->run.group.empty() && !calls.insert(found->run.group).second) continue;
    if (const auto known = median(*found)) medians.push_back(*known);
  }
  return medians;
}

std::optional<NoiseFloor> Ratios::floor_under(const RunView& a, const RunView& b) {
  std::vector<std::vector<LogMedian>> groups = {repetitions(a, b)};
  if (!repeats(a.run, b.run)) groups.push_back(repetitions(b, a));
  return noise_floor(groups);
}

std::optional<Ratio> Ratios::of(const RunView& run, const RunView& than) {
  if (run.run.id == than.run.id || !comparable(run, than)) return std::nullopt;
  const auto [place, fresh] = known_.try_emplace({run.run.id, than.run.id});
  if (!fresh) return place->second;
  const RunSeries &fast = series(run), &slow = series(than);
  std::optional<Ratio> found;
  if (!fast.seconds.empty() && !slow.seconds.empty()) {
    VerdictOptions options;
    options.alpha = kAlpha;
    options.side_by_side = in_one_call(run, than);
    const std::optional<NoiseFloor> floor =
        options.side_by_side ? std::nullopt : floor_under(run, than);
    const Comparison result = compare(slow, fast, options, floor);
    found.emplace();
    found->speedup = 1.0 / result.ratio;
    found->low = 1.0 / result.high;
    found->high = 1.0 / result.low;
    found->sound = !result.ranges;
    found->verdict = result.verdict;
    found->side_by_side = options.side_by_side;
    found->floor_known = floor.has_value();
    found->basis = result.paired ? "iterations, turn by turn" : "iterations";
  } else {
    const std::vector<double> of_run = epoch_times(run), of_than = epoch_times(than);
    if (!of_run.empty() && !of_than.empty()) found = by_epochs(of_run, of_than);
  }
  if (found) {
    found->of = &run;
    found->than = &than;
  }
  return known_[{run.run.id, than.run.id}] = std::move(found);
}

std::string times_text(const Ratio& ratio) {
  return times_text(Estimate{ratio.speedup, ratio.low, ratio.high, 0});
}

std::string times_text(const Estimate& ratio) {
  if (ratio.low >= ratio.high) return number_text(ratio.value) + "×";
  return fmt::format("{}× [{}–{}]", number_text(ratio.value), number_text(ratio.low),
                     number_text(ratio.high));
}

std::vector<const RunView*> newest_of(const std::vector<const RunView*>& runs) {
  std::vector<const RunView*> newest;
  for (const RunView* run : runs) {
    const auto older = std::find_if(newest.begin(), newest.end(), [&](const RunView* known) {
      return same_place(*known, *run) && comparable(*known, *run);
    });
    if (older == newest.end()) {
      newest.push_back(run);
    } else {
      *older = run;
    }
  }
  return newest;
}

}  // namespace ridgeline::report
