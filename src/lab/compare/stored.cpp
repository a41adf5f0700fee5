#include "lab/compare/stored.h"

#include <algorithm>
#include <set>

#include "base/error.h"

namespace ridgeline {
namespace {

constexpr std::size_t kMostRepetitions = 20;  // of each run, the newest: more cost time only

std::string name_of(const RunRecord& run) { return fmt::format("run {}", run.id); }

RunSeries measured(const Store& store, const RunRecord& run, double scale) {
  RunSeries series = run_series(store.samples(run.id), scale);
  if (series.seconds.empty()) {
    bad_input("{} ({} {}) has no measured iterations; 'ridgeline bench' records them", name_of(run),
              run.command, run.work.model);
  }
  return series;
}

// The run and its repetitions in other calls, without `other`: what is compared cannot tell how
// much repetitions differ.
std::vector<LogMedian> repetitions(const Store& store, const RunRecord& run,
                                   const RunRecord& other) {
  std::vector<LogMedian> medians;
  std::set<std::string> calls;
  std::vector<RunRecord> runs = store.runs({{"model", run.work.model}});
  std::reverse(runs.begin(), runs.end());
  for (const RunRecord& found : runs) {
    if (medians.size() >= kMostRepetitions) break;
    if (found.id == other.id || !repeats(found, run) || found.status != RunStatus::complete) {
      continue;
    }
    // Of one call one run: those side by side share the machine's mood.
    if (!found.group.empty() && !calls.insert(found.group).second) continue;
    const RunSeries series = run_series(store.samples(found.id));
    if (series.seconds.empty()) continue;
    if (const auto median = log_median(series)) medians.push_back(*median);
  }
  return medians;
}

std::optional<NoiseFloor> floor_under(const Store& store, const RunRecord& a, const RunRecord& b) {
  std::vector<std::vector<LogMedian>> groups = {repetitions(store, a, b)};
  if (!repeats(a, b)) groups.push_back(repetitions(store, b, a));
  return noise_floor(groups);
}

std::string environment_text(const Store& store, const std::string& key) {
  for (const EnvironmentRecord& environment : store.environments()) {
    if (environment.key == key) {
      return environment.label.empty() ? fmt::format("{} ({})", environment.host, environment.cpu)
                                       : environment.label;
    }
  }
  return key;
}

std::vector<std::string> warnings_of(const Store& store, const RunComparison& comparison,
                                     bool side_by_side) {
  std::vector<std::string> warnings;
  const RunRecord &a = comparison.a, &b = comparison.b;
  if (!comparison.work.empty()) {
    warnings.push_back("the work differs: " + differences_text(comparison.work));
  }
  if (a.environment != b.environment) {
    warnings.push_back(fmt::format("the environments differ: {} against {}",
                                   environment_text(store, a.environment),
                                   environment_text(store, b.environment)));
  }
  for (const RunRecord* run : {&a, &b}) {
    if (run->status != RunStatus::complete) {
      warnings.push_back(fmt::format("{} did not run to its end", name_of(*run)));
    }
  }
  if (!side_by_side && !comparison.floor) {
    warnings.push_back(
        "measured in different calls, and no repetition of either is in the store: how much runs "
        "differ by themselves is unknown, and the interval does not hold it");
  }
  return warnings;
}

}  // namespace

RunComparison compare_runs(const Store& store, const RunRecord& a, const RunRecord& b,
                           VerdictOptions options, bool force) {
  if (a.id == b.id) bad_input("both names mean run {}; name two runs", a.id);
  RunComparison comparison;
  comparison.a = a;
  comparison.b = b;
  comparison.work = work_differences(a, b);
  comparison.executor = executor_differences(a, b);
  if (!comparison.work.empty() && !force) {
    bad_input("{} and {} did different work ({}); --force compares them all the same", name_of(a),
              name_of(b), differences_text(comparison.work));
  }
  comparison.per_sample = a.work.batch != b.work.batch;
  const auto scale = [&](const RunRecord& run) {
    return comparison.per_sample ? 1.0 / static_cast<double>(run.work.batch) : 1.0;
  };
  options.side_by_side = !a.group.empty() && a.group == b.group;
  const RunSeries series_a = measured(store, a, scale(a)), series_b = measured(store, b, scale(b));
  if (!options.side_by_side) comparison.floor = floor_under(store, a, b);
  comparison.result = compare(series_a, series_b, options, comparison.floor);
  const auto side = [&](const RunRecord& run, double median) {
    GapSide known = gap_side(run, median / scale(run), store.samples(run.id), store.steps(run.id),
                             store.readings(run.id), store.ceilings(run.environment));
    known.scale = scale(run);
    return known;
  };
  comparison.gap =
      gap_ledger(side(a, comparison.result.median_a), side(b, comparison.result.median_b));
  if (comparison.result.paired) add_turns(comparison.result.ratio, comparison.gap);
  comparison.warnings = warnings_of(store, comparison, options.side_by_side);
  comparison.findings_a = store.findings(a.id);
  comparison.findings_b = store.findings(b.id);
  return comparison;
}

RunRecord find_run(const Store& store, const std::string& name) {
  if (name.find('=') == std::string::npos) return store.run(name);
  std::vector<RunRecord> runs = store.runs(parse_run_filter(name));
  if (runs.empty()) bad_input("no run in the store fits '{}'", name);
  return runs.back();
}

std::vector<RunRecord> runs_of_call(const Store& store, const std::string& name) {
  std::vector<RunRecord> all = store.runs();
  std::string group;
  for (const RunRecord& run : all) {
    if (run.group.empty() || (name != "last" && !run.group.starts_with(name))) continue;
    if (name != "last" && !group.empty() && group != run.group) {
      bad_input("more than one call begins with '{}': {} and {}", name, group, run.group);
    }
    group = run.group;
  }
  if (group.empty()) bad_input("no call '{}' in the store; 'last' means the newest", name);
  std::erase_if(all, [&](const RunRecord& run) { return run.group != group; });
  return all;
}

}  // namespace ridgeline
