#include "analysis/compare/stored.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "base/text.h"

namespace ridgeline {
namespace {

constexpr std::size_t kMostNamed = 6;  // differences of environments

std::string name_of(const RunRecord& run) { return fmt::format("run {}", run.id); }

void check_comparable(const RunComparison& comparison) {
  const RunRecord &a = comparison.a, &b = comparison.b;
  if (!comparison.work.empty()) {
    bad_input("{} and {} did different work ({}); --force compares them anyway", name_of(a),
              name_of(b), differences_text(comparison.work));
  }
  if (way_of(a) != way_of(b)) {
    bad_input(
        "{} ({}) and {} ({}) were measured in different ways; --force compares them all the "
        "same",
        name_of(a), a.command, name_of(b), b.command);
  }
}

// All that is known of an environment, by name.
std::map<std::string, std::string> facts_of(const EnvironmentRecord& environment) {
  std::map<std::string, std::string> facts = {{"label", environment.label},
                                              {"host", environment.host}};
  const auto fingerprint = nlohmann::json::parse(environment.fingerprint, nullptr, false);
  if (!fingerprint.is_object() || fingerprint.empty()) {
    facts.insert({{"cpu", environment.cpu}, {"gpus", environment.gpus}});
    return facts;
  }
  const auto flat = fingerprint.flatten();
  for (const auto& [path, value] : flat.items()) {
    std::string name = path.substr(1);
    std::replace(name.begin(), name.end(), '/', ' ');
    facts[name] = value.is_string() ? value.get<std::string>() : json_text(value);
  }
  return facts;
}

// "cpu usable_processors: 2 against 1; build compiler: GCC 12 against Clang 15"
std::string environments_text(const Store& store, const RunRecord& a, const RunRecord& b) {
  std::map<std::string, std::string> facts_a, facts_b;
  for (const EnvironmentRecord& environment : store.environments()) {
    if (environment.key == a.environment) facts_a = facts_of(environment);
    if (environment.key == b.environment) facts_b = facts_of(environment);
  }
  std::vector<std::string> differences;
  for (const auto& [name, value] : facts_a) {
    const auto other = facts_b.find(name);
    const std::string against = other == facts_b.end() ? "" : other->second;
    const auto shown = [](const std::string& text) { return text.empty() ? "none" : text; };
    if (value != against) {
      differences.push_back(fmt::format("{}: {} against {}", name, shown(value), shown(against)));
    }
  }
  const std::size_t all = differences.size();
  if (all > kMostNamed) {
    differences.resize(kMostNamed);
    differences.push_back(fmt::format("and {} more", all - kMostNamed));
  }
  return joined(differences, "; ");
}

std::vector<std::string> warnings_of(const Store& store, const RunComparison& comparison) {
  std::vector<std::string> warnings;
  const RunRecord &a = comparison.a, &b = comparison.b;
  if (!comparison.work.empty()) {
    warnings.push_back("the work differs: " + differences_text(comparison.work));
  }
  if (a.environment != b.environment) {
    warnings.push_back("the environments differ: " + environments_text(store, a, b));
  }
  for (const RunRecord* run : {&a, &b}) {
    if (run->status != RunStatus::complete) {
      warnings.push_back(fmt::format("{} did not run to its end", name_of(*run)));
    }
  }
  return warnings;
}

}  // namespace

void check_verdict_options(const VerdictOptions& options) {
  if (!(options.margin > 0.0 && options.margin < 1.0)) {
    bad_input("--margin {}: must be above 0 and below 1; 0.02 is 2%", options.margin);
  }
  if (!(options.alpha > 0.0 && options.alpha < 0.5)) {
    bad_input("--alpha {}: must be above 0 and below 0.5; 0.01 gives a 99% interval",
              options.alpha);
  }
}

RunComparison compare_runs(const Store& store, const RunRecord& a, const RunRecord& b,
                           const VerdictOptions& options, bool force) {
  if (a.id == b.id) bad_input("A and B are both run {}; name two different runs", a.id);
  RunComparison comparison;
  comparison.a = a;
  comparison.b = b;
  comparison.work = work_differences(a, b);
  comparison.executor = executor_differences(a, b);
  if (!force) check_comparable(comparison);
  PairJudge judge(store);
  for (const RunRecord* run : {&a, &b}) {
    if (judge.has_times(*run)) continue;
    bad_input("{} ({} {}) has no measured iterations; 'ridgeline bench' records them",
              name_of(*run), run->command, run->work.model);
  }
  comparison.pair = *judge.judge(a, b, options);
  const Comparison& result = comparison.pair.result;
  const auto side = [&](const RunRecord& run, double median) {
    const double scale =
        comparison.pair.per_sample ? 1.0 / static_cast<double>(run.work.batch) : 1.0;
    GapSide known = gap_side(run, median / scale, store.samples(run.id), store.steps(run.id),
                             store.readings(run.id), store.ceilings(run.environment));
    known.scale = scale;
    return known;
  };
  comparison.gap = gap_ledger(side(a, result.median_a), side(b, result.median_b));
  if (result.paired) add_turns(result.ratio, comparison.gap);
  comparison.warnings = warnings_of(store, comparison);
  comparison.findings_a = store.findings(a.id);
  comparison.findings_b = store.findings(b.id);
  return comparison;
}

RunRecord find_run(const Store& store, const std::string& name) {
  if (name.find('=') == std::string::npos) return store.run(name);
  std::vector<RunRecord> runs = store.runs(parse_run_filter(name));
  if (runs.empty()) bad_input("no run in the store matches '{}'", name);
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
