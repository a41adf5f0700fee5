#include "analysis/compare/verdict.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/compare/paired.h"
#include "analysis/stats/bootstrap.h"
#include "analysis/stats/distributions.h"
#include "analysis/stats/summary.h"
#include "base/error.h"

namespace ridgeline {
namespace {

constexpr std::size_t kFewest = 2;            // samples that show a factor of kApart
constexpr std::size_t kFewestOfInterval = 6;  // of fewer no interval reaches its confidence

double squared(double x) { return x * x; }

// The logarithm of the median of each process.
std::map<std::int64_t, double> process_medians(const RunSeries& series) {
  std::map<std::int64_t, std::vector<double>> parts;
  for (std::size_t i = 0; i < series.seconds.size(); ++i) {
    parts[series.process[i]].push_back(series.seconds[i]);
  }
  std::map<std::int64_t, double> medians;
  for (const auto& [process, seconds] : parts) medians[process] = std::log(median_of(seconds));
  return medians;
}

// The ratio with drawn ones around it, and the variance of their parts.
struct Replicates {
  double center = 0.0;  // all of these are logarithms
  std::vector<double> log_ratios;
  std::int64_t units_a = 0, units_b = 0;
  VarianceComponent within;               // of the ratio
  double within_a = 0.0, within_b = 0.0;  // of the medians; unpaired only
};

double corrected_variance(const std::vector<double>& values, double units) {
  return squared(summarise(values).deviation) * units / (units - 1.0);
}

Replicates draw_turns(const std::vector<double>& log_ratios) {
  PairedRatio ratio = paired_ratio(log_ratios);
  const double units = ratio.units;
  const VarianceComponent within = {corrected_variance(ratio.replicates, units), units - 1.0};
  return {ratio.log_ratio, std::move(ratio.replicates), ratio.units, ratio.units, within};
}

Replicates draw_apart(const RunSeries& a, const RunSeries& b) {
  const UnitLabels units_a = unit_labels(a.seconds, a.turn),
                   units_b = unit_labels(b.seconds, b.turn);
  Replicates replicates;
  replicates.center = std::log(median_of(b.seconds) / median_of(a.seconds));
  replicates.units_a = units_a.count;
  replicates.units_b = units_b.count;
  if (units_a.count < 2 || units_b.count < 2) return replicates;
  const MedianResampler of_a(a.seconds, units_a), of_b(b.seconds, units_b);
  std::vector<std::int32_t> times_a(static_cast<std::size_t>(units_a.count));
  std::vector<std::int32_t> times_b(static_cast<std::size_t>(units_b.count));
  std::vector<double> logs_a, logs_b;
  for (std::uint64_t replicate = 0; replicate < kReplicates; ++replicate) {
    UnitDraw random(replicate);
    random.draw(times_a);
    random.draw(times_b);
    logs_a.push_back(std::log(of_a.median(times_a)));
    logs_b.push_back(std::log(of_b.median(times_b)));
    replicates.log_ratios.push_back(logs_b.back() - logs_a.back());
  }
  const double count_a = units_a.count, count_b = units_b.count;
  replicates.within_a = corrected_variance(logs_a, count_a);
  replicates.within_b = corrected_variance(logs_b, count_b);
  const VarianceComponent parts[] = {{replicates.within_a, count_a - 1.0},
                                     {replicates.within_b, count_b - 1.0}};
  replicates.within = sum_of(parts);
  return replicates;
}

// What the medians of processes scatter beyond what the drawn blocks explain, as it enters the
// median of all. Nothing with one process.
std::optional<VarianceComponent> beyond_blocks(const std::map<std::int64_t, double>& medians,
                                               double within) {
  if (medians.size() < 2) return std::nullopt;
  std::vector<double> values;
  for (const auto& [process, value] : medians) values.push_back(value);
  const auto count = static_cast<double>(values.size());
  const double variance = squared(summarise(values).deviation) / count;
  return VarianceComponent{std::max(variance - within, 0.0), count - 1.0};
}

// Of runs that took turns: the ratio of each process by itself.
std::optional<VarianceComponent> between_processes(const std::vector<std::int64_t>& turns,
                                                   const std::vector<double>& log_ratios,
                                                   const Replicates& replicates) {
  std::map<std::int64_t, std::vector<double>> parts;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    parts[process_of(turns[i])].push_back(log_ratios[i]);
  }
  std::map<std::int64_t, double> ratios;
  for (const auto& [process, values] : parts) ratios[process] = midmean(values);
  return beyond_blocks(ratios, replicates.within.variance);
}

std::optional<VarianceComponent> between_processes(const RunSeries& a, const RunSeries& b,
                                                   const Replicates& replicates) {
  std::vector<VarianceComponent> parts;
  if (const auto part = beyond_blocks(process_medians(a), replicates.within_a)) {
    parts.push_back(*part);
  }
  if (const auto part = beyond_blocks(process_medians(b), replicates.within_b)) {
    parts.push_back(*part);
  }
  if (parts.empty()) return std::nullopt;
  return sum_of(parts);
}

std::string percent(double ratio) {
  const double percents = 100.0 * (ratio - 1.0);
  return percents < 1e5 ? fmt::format("{:+.2f}%", percents) : fmt::format("{:+.3g}%", percents);
}

std::string reason_of(const Comparison& result, const VerdictOptions& options) {
  const std::string interval =
      fmt::format("the {:.4g}% interval, {} to {},", 100.0 * (1.0 - options.alpha),
                  percent(result.low), percent(result.high));
  const double margin = 100.0 * options.margin;
  switch (result.verdict) {
    case Verdict::faster:
    case Verdict::slower:
      return fmt::format(
          "{} does not contain 0, and the difference is larger than the margin of {:.4g}%",
          interval, margin);
    case Verdict::same:
      return fmt::format("{} is within the margin of {:.4g}%", interval, margin);
    case Verdict::undecided:
      break;
  }
  if (result.low > 1.0 || result.high < 1.0) {
    return fmt::format(
        "there is a difference, but {} does not tell whether it is beyond the "
        "margin of {:.4g}%; more samples would",
        interval, margin);
  }
  return fmt::format(
      "{} contains 0 and differences larger than the margin of {:.4g}%; more "
      "samples would narrow it",
      interval, margin);
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::faster:
      return "faster";
    case Verdict::slower:
      return "slower";
    case Verdict::same:
      return "same";
    case Verdict::undecided:
      return "undecided";
  }
  return "undecided";
}

Verdict verdict_of(double ratio, double low, double high, double margin) {
  // The margin is symmetric in the ratio: B 2% slower than A is A so much faster than B.
  const double above = 1.0 + margin, below = 1.0 / above;
  if (low >= below && high <= above) return Verdict::same;
  if (low > 1.0 && ratio > above) return Verdict::slower;
  if (high < 1.0 && ratio < below) return Verdict::faster;
  return Verdict::undecided;
}

Verdict verdict_of_few(std::span<const double> a, std::span<const double> b) {
  if (a.size() < kFewest || b.size() < kFewest) return Verdict::undecided;
  const auto [min_a, max_a] = std::minmax_element(a.begin(), a.end());
  const auto [min_b, max_b] = std::minmax_element(b.begin(), b.end());
  if (*min_b > kApart * *max_a) return Verdict::slower;
  if (*min_a > kApart * *max_b) return Verdict::faster;
  return Verdict::undecided;
}

namespace {

void give_ranges(Comparison& result, const RunSeries& a, const RunSeries& b) {
  const auto [min_a, max_a] = std::minmax_element(a.seconds.begin(), a.seconds.end());
  const auto [min_b, max_b] = std::minmax_element(b.seconds.begin(), b.seconds.end());
  result.ranges = true;
  result.low = *min_b / *max_a;
  result.high = *max_b / *min_a;
  result.verdict = verdict_of_few(a.seconds, b.seconds);
  result.reason = "too few samples for an interval; given is the range of the samples' ratios";
  if (result.verdict != Verdict::undecided) {
    result.reason += fmt::format(", all beyond a factor of {:.4g}", kApart);
  }
}

}  // namespace

Comparison compare(const RunSeries& a, const RunSeries& b, const VerdictOptions& options,
                   const std::optional<NoiseFloor>& floor) {
  ensure(!a.seconds.empty() && !b.seconds.empty(), "a comparison needs samples of both runs");
  ensure(options.margin > 0.0 && options.alpha > 0.0 && options.alpha < 1.0,
         "margin {} and alpha {}: must be positive, alpha below 1", options.margin, options.alpha);
  Comparison result;
  result.median_a = median_of(a.seconds);
  result.median_b = median_of(b.seconds);
  ensure(result.median_a > 0.0 && result.median_b > 0.0, "times must be positive");
  result.samples_a = static_cast<std::int64_t>(a.seconds.size());
  result.samples_b = static_cast<std::int64_t>(b.seconds.size());
  std::vector<std::int64_t> turns;
  if (options.side_by_side) turns = shared_turns(a, b);
  result.paired = turns.size() >= kFewestShared;
  std::vector<double> log_ratios;
  if (result.paired) log_ratios = turn_log_ratios(a, b, turns);
  const Replicates replicates = result.paired ? draw_turns(log_ratios) : draw_apart(a, b);
  result.ratio = std::exp(replicates.center);
  result.units_a = replicates.units_a;
  result.units_b = replicates.units_b;
  if (replicates.log_ratios.empty() || a.seconds.size() < kFewestOfInterval ||
      b.seconds.size() < kFewestOfInterval) {
    give_ranges(result, a, b);
    return result;
  }

  std::vector<VarianceComponent> components = {replicates.within};
  result.within = std::sqrt(replicates.within.variance);
  if (const auto processes = result.paired ? between_processes(turns, log_ratios, replicates)
                                           : between_processes(a, b, replicates)) {
    components.push_back(*processes);
    result.between_processes = std::sqrt(processes->variance);
  }
  if (floor && !options.side_by_side) {
    components.push_back({2.0 * floor->run.variance, floor->run.degrees});  // A's and B's
    result.between_runs = std::sqrt(components.back().variance);
  }
  const VarianceComponent total = sum_of(components);
  const double p = 1.0 - options.alpha / 2.0;
  const double student = student_quantile(p, total.degrees);
  const double center = replicates.center;
  double below = student * std::sqrt(total.variance), above = below;
  const double drawn = summarise(replicates.log_ratios).deviation;
  if (drawn > 0.0) {
    // The drawn ratios give the shape: a skewed distribution keeps its longer side.
    const double stretch = student / normal_quantile(p) * std::sqrt(total.variance) / drawn;
    const double tail = 50.0 * options.alpha;
    below = stretch * std::max(center - percentile(replicates.log_ratios, tail), 0.0);
    above = stretch * std::max(percentile(replicates.log_ratios, 100.0 - tail) - center, 0.0);
  }
  result.low = std::exp(center - below);
  result.high = std::exp(center + above);
  result.verdict = verdict_of(result.ratio, result.low, result.high, options.margin);
  result.reason = reason_of(result, options);
  // Few units make a wide interval, however far the samples lie apart.
  if (result.verdict == Verdict::undecided &&
      verdict_of_few(a.seconds, b.seconds) != Verdict::undecided) {
    give_ranges(result, a, b);
  }
  return result;
}

}  // namespace ridgeline
