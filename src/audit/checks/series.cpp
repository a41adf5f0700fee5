// What the times of one configuration show, one after the other.

#include "analysis/stats/series.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/stats/summary.h"
#include "audit/checks/checks.h"
#include "audit/context.h"
#include "base/text.h"

namespace ridgeline::audit {
namespace {

constexpr std::size_t kShortest = 8;
// Patterns show in the first ones; searching a million would take long.
constexpr std::size_t kLongest = 20'000;

// Times of the iterations in order; of rates where there are no times. Empty: no series.
std::vector<double> iteration_times(const Context& context, const Group& group) {
  std::vector<double> times = context.series(group, Role::batch_time);
  if (times.size() < kShortest) {
    times = context.series(group, Role::throughput);
    for (double& value : times) value = 1.0 / value;
  }
  if (times.size() < kShortest) return {};
  if (times.size() > kLongest) times.resize(kLongest);
  return times;
}

bool has_warm_up(const std::vector<double>& times) {
  const std::vector<double> rest(times.begin() + static_cast<std::ptrdiff_t>(times.size() / 5 + 1),
                                 times.end());
  const Summary summary = summarise(rest);
  const double limit = summary.median + std::max(0.3 * summary.median, 8.0 * 1.4826 * summary.mad);
  return times.front() > limit && times.front() > percentile(rest, 98.0);
}

// The step of the grid on which all values lie; nothing where there is none.
std::optional<double> grid_of(const std::vector<double>& times) {
  std::vector<double> values = times;
  std::ranges::sort(values);
  // Stalls are so many steps away that rounding blurs the grid.
  const double far = 10.0 * median_of(times);
  values.erase(std::ranges::upper_bound(values, far), values.end());
  std::vector<double> distinct;
  for (const double value : values) {
    if (distinct.empty() || value - distinct.back() > 1e-6 * value) distinct.push_back(value);
  }
  if (distinct.size() < 2) return std::nullopt;
  double step = distinct.back();
  for (std::size_t i = 1; i < distinct.size(); ++i) {
    step = std::min(step, distinct[i] - distinct[i - 1]);
  }
  for (const double value : distinct) {
    const double steps = (value - distinct.front()) / step;
    if (std::abs(steps - std::round(steps)) > 0.02) return std::nullopt;
  }
  // Few values are on some grid by chance: many samples must share them.
  if (3 * distinct.size() > times.size()) return std::nullopt;
  return step;
}

bool is_series_table(const Context& context) {
  return std::ranges::any_of(context.groups(),
                             [](const Group& group) { return group.rows.size() >= 3; });
}

void judge_claimed_count(const Context& context, const Group& group, Findings& findings) {
  const Table& table = context.table();
  const std::size_t row = group.first();
  const auto claimed = table.number(Role::iterations, row);
  if (!claimed) return;
  auto recorded = table.number(Role::recorded_iterations, row);
  if (!recorded && table.find(Role::iteration) != nullptr && !context.is_warmup(row)) {
    recorded = static_cast<double>(group.rows.size());
  }
  if (!recorded || *recorded >= 0.98 * *claimed) return;
  findings.push_back(found("iteration-count", Severity::error, Confidence::certain,
                           fmt::format("{}: {} iterations claimed, {} recorded", context.label(row),
                                       plain_number(*claimed), plain_number(*recorded)),
                           "the run ended early, or rows were lost", group.rows));
}

}  // namespace

void check_warm_up(Context& context, Findings& findings) {
  for (const Group& group : context.groups()) {
    if (context.is_warmup(group.first())) continue;
    if (const auto times = iteration_times(context, group); !times.empty()) {
      if (!has_warm_up(times)) continue;
      const double median = median_of(times);
      const auto slow = std::ranges::find_if(times, [&](double t) { return t < 1.3 * median; });
      findings.push_back(
          found("warm-up", Severity::warning, Confidence::likely,
                fmt::format("{}: the first iteration takes {}, the median of all {}; {} slow at "
                            "the start",
                            context.label(group.first()), duration_text(times.front()),
                            duration_text(median), slow - times.begin()),
                "start-up and warm-up are among the measured iterations", {group.first()}));
      continue;
    }
    const std::vector<double> epochs = context.series(group, Role::epoch_time);
    if (epochs.size() < 3 || context.table().find(Role::epoch) == nullptr) continue;
    const double median = median_of(std::span(epochs).subspan(1));
    if (epochs.front() > 1.3 * median) {
      findings.push_back(found(
          "warm-up", Severity::warning, Confidence::likely,
          fmt::format("{}: the first epoch takes {}, the others {}", context.label(group.first()),
                      duration_text(epochs.front()), duration_text(median)),
          "compiling or reading the data for the first time is inside", {group.first()}));
    }
  }
}

void check_clock_resolution(Context& context, Findings& findings) {
  for (const Group& group : context.groups()) {
    const std::vector<double> times = context.series(group, Role::batch_time);
    if (times.size() < kShortest) continue;
    const double median = median_of(times);
    if (std::ranges::all_of(times, [&](double t) { return near(t, times.front(), 1e-9); })) {
      findings.push_back(found("clock-resolution", Severity::warning, Confidence::likely,
                               fmt::format("{}: all {} times are {}", context.label(group.first()),
                                           times.size(), duration_text(median)),
                               "a mean was written into every row, or the clock is too coarse",
                               group.rows));
      continue;
    }
    const auto step = grid_of(times);
    if (!step || *step < 0.02 * median) continue;
    findings.push_back(found("clock-resolution", Severity::warning,
                             *step > 0.05 * median ? Confidence::certain : Confidence::likely,
                             fmt::format("{}: all {} times are multiples of {}, {} of their median",
                                         context.label(group.first()), times.size(),
                                         duration_text(*step), share_text(*step / median)),
                             "the clock's tick, or rounding: use a monotonic clock in nanoseconds",
                             group.rows));
  }
}

void check_few_samples(Context& context, Findings& findings) {
  const Table& table = context.table();
  std::vector<std::size_t> few;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto repeats = table.number(Role::repeats, row);
    if (repeats && *repeats < 5.0) few.push_back(row);
  }
  if (!few.empty()) {
    findings.push_back(found("few-samples", Severity::warning, Confidence::certain,
                             fmt::format("{} rows rest on fewer than 5 measurements", few.size()),
                             "their spread is not known: five repeats are the least", few));
  }
  const bool measured =
      table.find(Role::throughput) != nullptr || table.find(Role::batch_time) != nullptr ||
      table.find(Role::total_time) != nullptr || table.find(Role::time) != nullptr;
  if (!measured || table.find(Role::deviation) != nullptr || table.find(Role::repeats) != nullptr ||
      table.find(Role::operation) != nullptr) {
    return;
  }
  if (!is_series_table(context)) {
    findings.push_back(found("few-samples", Severity::note, Confidence::certain,
                             "each configuration has one number, without repeats or an interval",
                             "differences of a few percent cannot be told from noise", {}));
    return;
  }
  for (const Group& group : context.groups()) {
    const std::size_t count = context.series(group, Role::batch_time).size();
    if (count == 0 || count >= 5 || context.is_warmup(group.first())) continue;
    findings.push_back(found("few-samples", Severity::warning, Confidence::certain,
                             fmt::format("{}: {} measurement{}", context.label(group.first()),
                                         count, count == 1 ? "" : "s"),
                             "five repeats are the least", group.rows));
  }
}

void check_periodic_samples(Context& context, Findings& findings) {
  for (const Group& group : context.groups()) {
    if (context.is_warmup(group.first())) continue;
    const std::vector<double> times = iteration_times(context, group);
    if (times.size() < 20) continue;
    const auto pattern = find_period(times);
    if (!pattern) continue;
    const double factor = std::max(pattern->ratio, 1.0 / pattern->ratio);
    findings.push_back(found(
        "periodic-samples", factor > 1.4 ? Severity::error : Severity::warning, Confidence::likely,
        fmt::format("{}: every {}. iteration is {} times as {} as the others ({} of {} rows)",
                    context.label(group.first()), pattern->period, plain_number(factor),
                    pattern->ratio < 1.0 ? "fast" : "slow", pattern->members, times.size()),
        "the device is waited for only now and then: the other times are launches, not work; "
        "synchronise before the clock is read",
        group.rows));
  }
}

void check_iteration_count(Context& context, Findings& findings) {
  for (const Group& group : context.groups()) judge_claimed_count(context, group, findings);
  if (context.table().find(Role::iteration) == nullptr) return;
  // All configurations but one have the same number of rows.
  std::map<std::size_t, std::vector<const Group*>> by_count;
  for (const Group& group : context.groups()) {
    if (!context.is_warmup(group.first())) by_count[group.rows.size()].push_back(&group);
  }
  if (by_count.size() != 2) return;
  const auto& [few, short_ones] = *by_count.begin();
  const auto& [many, whole_ones] = *by_count.rbegin();
  if (short_ones.size() * 3 > whole_ones.size() ||
      static_cast<double>(few) > 0.9 * static_cast<double>(many)) {
    return;
  }
  for (const Group* group : short_ones) {
    findings.push_back(found("iteration-count", Severity::warning, Confidence::likely,
                             fmt::format("{}: {} rows, all other configurations have {}",
                                         context.label(group->first()), few, many),
                             "the run ended early: its mean is not the mean of as many iterations",
                             group->rows));
  }
}

}  // namespace ridgeline::audit
