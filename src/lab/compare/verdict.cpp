#include "lab/compare/verdict.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "lab/stats/bootstrap.h"
#include "lab/stats/distributions.h"
#include "lab/stats/summary.h"

namespace ridgeline {
namespace {

constexpr std::size_t kFewShared = 6, kMostUnits = 200;

double squared(double x) { return x * x; }

// The logarithm of the median of each part of a series, by the part's number.
template <typename Part>
std::map<std::int64_t, double> log_medians(const RunSeries& series, Part part) {
  std::map<std::int64_t, std::vector<double>> parts;
  for (std::size_t i = 0; i < series.seconds.size(); ++i) {
    parts[part(i)].push_back(series.seconds[i]);
  }
  std::map<std::int64_t, double> medians;
  for (const auto& [number, seconds] : parts) medians[number] = std::log(median_of(seconds));
  return medians;
}

// The units of both runs. The first `shared` units of both belong together and are drawn together.
struct Units {
  UnitLabels a, b;
  std::int32_t shared = 0;
};

// Shared turns are joined with their neighbours where their ratios are correlated.
std::map<std::int64_t, std::int32_t> shared_units(const RunSeries& a, const RunSeries& b,
                                                  const std::vector<std::int64_t>& turns) {
  const auto turn_medians = [](const RunSeries& series) {
    return log_medians(series, [&](std::size_t i) { return series.turn[i]; });
  };
  const auto medians_a = turn_medians(a), medians_b = turn_medians(b);
  std::vector<double> ratios;
  for (const std::int64_t turn : turns) ratios.push_back(medians_b.at(turn) - medians_a.at(turn));
  std::size_t units = std::min(turns.size(), kMostUnits);
  const double correlated = correlation_length(ratios);
  if (correlated > 2.0) {
    const double fitting = static_cast<double>(turns.size()) / correlated;
    units = std::min(units, std::max(static_cast<std::size_t>(fitting), kFewShared));
  }
  std::map<std::int64_t, std::int32_t> unit_of;
  for (std::size_t i = 0; i < turns.size(); ++i) {
    unit_of[turns[i]] = static_cast<std::int32_t>(i * units / turns.size());
  }
  return unit_of;
}

// Turns that only one of the runs has come after the shared ones.
UnitLabels labels_beside(const RunSeries& series,
                         const std::map<std::int64_t, std::int32_t>& shared, std::int32_t count) {
  std::vector<std::int64_t> alone;
  for (const std::int64_t turn : series.turn) {
    if (!shared.contains(turn) && (alone.empty() || alone.back() != turn)) alone.push_back(turn);
  }
  const std::size_t units = std::min(alone.size(), kMostUnits);
  std::map<std::int64_t, std::int32_t> unit_of = shared;
  for (std::size_t i = 0; i < alone.size(); ++i) {
    unit_of[alone[i]] = count + static_cast<std::int32_t>(i * units / alone.size());
  }
  UnitLabels labels;
  labels.count = count + static_cast<std::int32_t>(units);
  for (const std::int64_t turn : series.turn) labels.unit.push_back(unit_of.at(turn));
  return labels;
}

Units units_of(const RunSeries& a, const RunSeries& b, bool side_by_side) {
  if (side_by_side) {
    const std::vector<std::int64_t> turns = shared_turns(a, b);
    if (turns.size() >= kFewShared) {
      const auto shared = shared_units(a, b, turns);
      const std::int32_t count = shared.at(turns.back()) + 1;
      return {labels_beside(a, shared, count), labels_beside(b, shared, count), count};
    }
  }
  return {unit_labels(a.seconds, a.turn), unit_labels(b.seconds, b.turn), 0};
}

// Drawn logarithmic ratios, and the variance of their parts.
struct Replicates {
  std::vector<double> log_ratios;
  VarianceComponent within;               // of the logarithmic ratio
  double within_a = 0.0, within_b = 0.0;  // of the logarithmic medians; unpaired only
};

double corrected_variance(const std::vector<double>& values, double units) {
  return squared(summarise(values).deviation) * units / (units - 1.0);
}

Replicates draw(const RunSeries& a, const RunSeries& b, const Units& units) {
  const MedianResampler of_a(a.seconds, units.a), of_b(b.seconds, units.b);
  const auto shared = static_cast<std::size_t>(units.shared);
  std::vector<std::int32_t> times_a(static_cast<std::size_t>(units.a.count));
  std::vector<std::int32_t> times_b(static_cast<std::size_t>(units.b.count));
  Replicates replicates;
  std::vector<double> logs_a, logs_b;
  for (std::uint64_t replicate = 0; replicate < kReplicates; ++replicate) {
    UnitDraw random(replicate);
    random.draw(std::span(times_a).first(shared));
    std::copy_n(times_a.begin(), shared, times_b.begin());
    random.draw(std::span(times_a).subspan(shared));
    random.draw(std::span(times_b).subspan(shared));
    logs_a.push_back(std::log(of_a.median(times_a)));
    logs_b.push_back(std::log(of_b.median(times_b)));
    replicates.log_ratios.push_back(logs_b.back() - logs_a.back());
  }
  if (shared > 0) {
    const auto count = static_cast<double>(shared);
    replicates.within = {corrected_variance(replicates.log_ratios, count), count - 1.0};
  } else {
    const double count_a = units.a.count, count_b = units.b.count;
    replicates.within_a = corrected_variance(logs_a, count_a);
    replicates.within_b = corrected_variance(logs_b, count_b);
    const VarianceComponent parts[] = {{replicates.within_a, count_a - 1.0},
                                       {replicates.within_b, count_b - 1.0}};
    replicates.within = sum_of(parts);
  }
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

std::optional<VarianceComponent> between_processes(const RunSeries& a, const RunSeries& b,
                                                   bool paired, const Replicates& replicates) {
  const auto process_medians = [](const RunSeries& series) {
    return log_medians(series, [&](std::size_t i) { return series.process[i]; });
  };
  const auto of_a = process_medians(a), of_b = process_medians(b);
  if (paired) {
    std::map<std::int64_t, double> ratios;
    for (const auto& [process, median] : of_a) {
      if (of_b.contains(process)) ratios[process] = of_b.at(process) - median;
    }
    return beyond_blocks(ratios, replicates.within.variance);
  }
  std::vector<VarianceComponent> parts;
  if (const auto part = beyond_blocks(of_a, replicates.within_a)) parts.push_back(*part);
  if (const auto part = beyond_blocks(of_b, replicates.within_b)) parts.push_back(*part);
  if (parts.empty()) return std::nullopt;
  return sum_of(parts);
}

std::string percent(double ratio) { return fmt::format("{:+.2f}%", 100.0 * (ratio - 1.0)); }

std::string reason_of(const Comparison& result, const VerdictOptions& options) {
  const std::string interval =
      fmt::format("the {:.4g}% interval, {} to {},", 100.0 * (1.0 - options.alpha),
                  percent(result.low), percent(result.high));
  const double margin = 100.0 * options.margin;
  switch (result.verdict) {
    case Verdict::faster:
    case Verdict::slower:
      return fmt::format("{} lies on one side of 0, and the ratio is beyond the margin of {:.4g}%",
                         interval, margin);
    case Verdict::same:
      return fmt::format("{} lies within the margin of {:.4g}%", interval, margin);
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
      "{} holds both no difference and more than the margin of {:.4g}%; more "
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

Comparison compare(const RunSeries& a, const RunSeries& b, const VerdictOptions& options,
                   const std::optional<NoiseFloor>& floor) {
  ensure(!a.seconds.empty() && !b.seconds.empty(), "a comparison needs samples of both runs");
  ensure(options.margin > 0.0 && options.alpha > 0.0 && options.alpha < 1.0,
         "margin {} and alpha {}: must be positive, alpha below 1", options.margin, options.alpha);
  Comparison result;
  result.median_a = median_of(a.seconds);
  result.median_b = median_of(b.seconds);
  ensure(result.median_a > 0.0 && result.median_b > 0.0, "times must be positive");
  result.ratio = result.median_b / result.median_a;
  result.samples_a = static_cast<std::int64_t>(a.seconds.size());
  result.samples_b = static_cast<std::int64_t>(b.seconds.size());
  const Units units = units_of(a, b, options.side_by_side);
  result.units_a = units.a.count;
  result.units_b = units.b.count;
  result.paired = units.shared > 0;
  if (units.a.count < 2 || units.b.count < 2) {
    const auto [min_a, max_a] = std::minmax_element(a.seconds.begin(), a.seconds.end());
    const auto [min_b, max_b] = std::minmax_element(b.seconds.begin(), b.seconds.end());
    result.low = *min_b / *max_a;
    result.high = *max_b / *min_a;
    result.reason = "too few samples for an interval; given is the range of the samples' ratios";
    return result;
  }

  const Replicates replicates = draw(a, b, units);
  std::vector<VarianceComponent> components = {replicates.within};
  result.within = std::sqrt(replicates.within.variance);
  if (const auto processes = between_processes(a, b, result.paired, replicates)) {
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
  const double center = std::log(result.ratio);
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
  return result;
}

}  // namespace ridgeline
