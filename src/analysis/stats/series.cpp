#include "analysis/stats/series.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>
#include <utility>

#include "analysis/stats/distributions.h"
#include "analysis/stats/summary.h"
#include "analysis/stats/trend.h"
#include "base/error.h"
#include "base/text.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kLongestPeriod = 64, kFewestMembers = 5;

// The standard deviation that a normal distribution with these distances would have. Where more
// than half the samples are equal (a coarse clock) the MAD is 0 and the mean distance takes its
// place.
double robust_deviation(std::span<const double> samples, const Summary& summary) {
  if (summary.mad > 0.0) return 1.4826 * summary.mad;
  double sum = 0.0;
  for (const double sample : samples) sum += std::abs(sample - summary.median);
  return std::sqrt(std::numbers::pi / 2.0) * sum / static_cast<double>(samples.size());
}

// "3rd", "10th"
std::string ordinal(std::int64_t number) {
  const std::int64_t teens = number / 10 % 10, last = number % 10;
  const char* end = teens == 1  ? "th"
                    : last == 1 ? "st"
                    : last == 2 ? "nd"
                    : last == 3 ? "rd"
                                : "th";
  return fmt::format("{}{}", number, end);
}

struct Members {
  std::vector<double> theirs, others;
};
Members split_by_period(std::span<const double> samples, std::int64_t period, std::int64_t phase) {
  Members members;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const bool member = static_cast<std::int64_t>(i) % period == phase;
    (member ? members.theirs : members.others).push_back(samples[i]);
  }
  return members;
}

// How many of the first `count` samples in this order fall on each phase.
std::vector<std::int64_t> hits_by_phase(const std::vector<std::size_t>& order, std::int64_t count,
                                        std::int64_t period) {
  std::vector<std::int64_t> hits(static_cast<std::size_t>(period));
  for (std::int64_t i = 0; i < count; ++i) {
    ++hits[order[static_cast<std::size_t>(i)] % static_cast<std::size_t>(period)];
  }
  return hits;
}

Finding outliers_finding(std::span<const double> samples, const std::vector<Outlier>& labels) {
  const double median = median_of(samples);
  const auto count = std::count_if(labels.begin(), labels.end(),
                                   [](Outlier label) { return label != Outlier::none; });
  const auto very = std::count(labels.begin(), labels.end(), Outlier::very_far);
  double farthest = median;
  for (const double sample : samples) {
    if (std::abs(sample - median) > std::abs(farthest - median)) farthest = sample;
  }
  const auto total = static_cast<double>(samples.size());
  return {"outliers", static_cast<double>(count) > 0.05 * total ? "warning" : "note",
          fmt::format("{} of {} samples ({:.1f}%) are far from the median of {}, {} of them very "
                      "far; the farthest is {}, {:.2f} times the median; all are kept",
                      count, samples.size(), 100.0 * static_cast<double>(count) / total,
                      duration_text(median), very, duration_text(farthest), farthest / median)};
}

Finding periodic_finding(std::span<const double> samples, const PeriodicPattern& pattern) {
  const Members members = split_by_period(samples, pattern.period, pattern.phase);
  const bool faster = pattern.ratio < 1.0;
  return {"periodic samples", "warning",
          fmt::format("every {} sample (from number {}) is {:.2f} times {}: median {} against {} "
                      "of the others; {} of the {} {} samples are among these {}; chance {:.1e}",
                      ordinal(pattern.period), pattern.phase + 1,
                      faster ? 1.0 / pattern.ratio : pattern.ratio, faster ? "faster" : "slower",
                      duration_text(median_of(members.theirs)),
                      duration_text(median_of(members.others)), pattern.extreme, pattern.members,
                      faster ? "fastest" : "slowest", pattern.members, pattern.chance)};
}

Finding drift_finding(const Drift& drift) {
  return {"drift", "warning",
          fmt::format("steps get {} over the run: the last quarter's median is {}, the first one's "
                      "{} ({:+.1f}%); chance {:.1e}",
                      drift.change > 0.0 ? "slower" : "faster", duration_text(drift.last),
                      duration_text(drift.first), 100.0 * drift.change, drift.chance)};
}

void add_data_findings(const DataWait& wait, std::vector<Finding>& findings) {
  if (wait.share > 0.1) {
    findings.push_back(
        {"loader-bound", "warning",
         fmt::format("{:.1f}% of the time of {} iterations was waiting for data; a faster loader "
                     "(more workers, packed data) would save it",
                     100.0 * wait.share, wait.iterations)});
  } else if (wait.stalled > 0) {
    findings.push_back(
        {"loader stalls", "warning",
         fmt::format("{} of {} iterations waited for data longer than half a median iteration, "
                     "the longest {}",
                     wait.stalled, wait.iterations, duration_text(wait.longest))});
  }
}

}  // namespace

std::vector<Outlier> label_outliers(std::span<const double> samples) {
  std::vector<Outlier> labels(samples.size(), Outlier::none);
  if (samples.size() < 3) return labels;
  const Summary summary = summarise(samples);
  const double deviation = robust_deviation(samples, summary);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double distance = std::abs(samples[i] - summary.median);
    if (distance <= 0.02 * std::abs(summary.median)) continue;
    if (distance > 5.0 * deviation) labels[i] = Outlier::far;
    if (distance > 15.0 * deviation) labels[i] = Outlier::very_far;
  }
  return labels;
}

std::optional<PeriodicPattern> find_period(std::span<const double> samples) {
  const auto n = static_cast<std::int64_t>(samples.size());
  const std::int64_t longest = std::min(kLongestPeriod, n / kFewestMembers);
  if (longest < 2) return std::nullopt;
  std::vector<std::size_t> fastest(samples.size());
  std::iota(fastest.begin(), fastest.end(), std::size_t{0});
  std::stable_sort(fastest.begin(), fastest.end(),
                   [&](std::size_t a, std::size_t b) { return samples[a] < samples[b]; });
  std::vector<std::size_t> slowest(fastest.rbegin(), fastest.rend());
  double tests = 0.0;  // each period, phase and side is one
  for (std::int64_t period = 2; period <= longest; ++period) {
    tests += 2.0 * static_cast<double>(period);
  }
  std::optional<PeriodicPattern> best;
  for (std::int64_t period = 2; period <= longest; ++period) {
    for (const auto* order : {&fastest, &slowest}) {
      const std::int64_t count = n / period;
      const std::vector<std::int64_t> hits = hits_by_phase(*order, count, period);
      const auto top = std::max_element(hits.begin(), hits.end());
      const std::int64_t phase = top - hits.begin();
      const std::int64_t members = (n - phase + period - 1) / period;
      const double chance = tests * hypergeometric_tail(n, members, count, *top);
      if (chance > 1e-4 || (best && chance >= best->chance)) continue;
      const Members parts = split_by_period(samples, period, phase);
      const double ratio = median_of(parts.theirs) / median_of(parts.others);
      const bool faster = order == &fastest;
      if (faster ? ratio > 1.0 / 1.05 : ratio < 1.05) continue;
      best = PeriodicPattern{period, phase, ratio, members, *top, chance};
    }
  }
  return best;
}

std::optional<Drift> find_drift(std::span<const double> samples) {
  const std::size_t n = samples.size();
  if (n < 16) return std::nullopt;
  // Medians of up to 20 parts: single outliers drop out, and neighbours that depend on each other
  // fall into one part.
  const std::size_t parts = std::min<std::size_t>(20, n / 2);
  std::vector<double> medians;
  for (std::size_t p = 0; p < parts; ++p) {
    const std::size_t begin = p * n / parts, end = (p + 1) * n / parts;
    medians.push_back(median_of(samples.subspan(begin, end - begin)));
  }
  const Trend trend = trend_of(medians);
  Drift drift;
  drift.chance = trend.chance;
  drift.first = median_of(samples.first(n / 4));
  drift.last = median_of(samples.last(n / 4));
  drift.change = drift.last / drift.first - 1.0;
  const bool same_way = (trend.rises > 0.0) == (drift.change > 0.0);
  if (drift.chance > 0.001 || !same_way || std::abs(drift.change) < 0.03) return std::nullopt;
  return drift;
}

std::optional<DataWait> data_wait_of(std::span<const Sample> samples) {
  DataWait wait;
  std::vector<double> walls;
  double total = 0.0, waited = 0.0;
  for (const Sample& sample : samples) {
    if (sample.kind != SampleKind::measured || !sample.data_wait_seconds) continue;
    walls.push_back(sample.wall_seconds);
    total += sample.wall_seconds;
    waited += *sample.data_wait_seconds;
    wait.longest = std::max(wait.longest, *sample.data_wait_seconds);
  }
  if (walls.empty()) return std::nullopt;
  wait.iterations = static_cast<std::int64_t>(walls.size());
  wait.share = total > 0.0 ? waited / total : 0.0;
  const double half = median_of(walls) / 2.0;
  wait.stalled = std::count_if(samples.begin(), samples.end(), [half](const Sample& sample) {
    return sample.kind == SampleKind::measured && sample.data_wait_seconds.value_or(0.0) > half;
  });
  return wait;
}

std::vector<Finding> series_findings(std::span<const Sample> samples) {
  struct Walls {
    std::vector<double> all, settled;
    bool cold = false;  // the iteration before was the first of a turn after turns of others
  };
  std::map<std::int64_t, Walls> processes;
  for (const Sample& sample : samples) {
    Walls& walls = processes[sample.process];
    if (sample.kind == SampleKind::warmup) walls.cold = sample.block > 0;
    if (sample.kind != SampleKind::measured) continue;
    walls.all.push_back(sample.wall_seconds);
    // Behind turns of others the second iteration may still be slower: that is no period of its
    // own.
    if (!std::exchange(walls.cold, false)) walls.settled.push_back(sample.wall_seconds);
  }
  std::erase_if(processes, [](const auto& process) { return process.second.all.empty(); });
  std::vector<Finding> findings;
  const auto add = [&](std::int64_t process, Finding finding) {
    if (processes.size() > 1) {
      finding.evidence = fmt::format("process {}: {}", process, finding.evidence);
    }
    findings.push_back(std::move(finding));
  };
  for (const auto& [process, walls] : processes) {
    if (const auto pattern = find_period(walls.settled)) {
      add(process, periodic_finding(walls.settled, *pattern));
    }
    if (const auto drift = find_drift(walls.all)) add(process, drift_finding(*drift));
    const std::vector<Outlier> labels = label_outliers(walls.all);
    const bool any = std::any_of(labels.begin(), labels.end(),
                                 [](Outlier label) { return label != Outlier::none; });
    if (any) add(process, outliers_finding(walls.all, labels));
  }
  if (const auto wait = data_wait_of(samples)) add_data_findings(*wait, findings);
  return findings;
}

}  // namespace ridgeline
