#include "analysis/compare/pair_judge.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/error.h"
#include "base/text.h"

namespace ridgeline {
namespace {

constexpr std::size_t kMostRepetitions = 20;  // of each run, the newest: more cost time only

constexpr std::array<std::string_view, 9> kDisturbances = {
    "noisy neighbour", "thermal throttling", "power throttling", "hardware slowdown",
    "clock drop",      "memory pressure",    "swapping",         "drift",
    "loader stalls"};

// The epochs of a training as times of an iteration.
RunSeries epoch_series(const RunRecord& run, const std::vector<EpochRecord>& epochs) {
  RunSeries series;
  for (const EpochRecord& epoch : steady_epochs(epochs)) {
    series.seconds.push_back(epoch.seconds * static_cast<double>(run.work.batch) /
                             static_cast<double>(epoch.samples));
    series.turn.push_back(epoch.epoch);
    series.process.push_back(0);
    series.at_seconds.push_back(0.0);
  }
  return series;
}

RunSeries scaled(RunSeries series, double factor) {
  for (double& seconds : series.seconds) seconds *= factor;
  return series;
}

// Doubtful runs must lie further apart than a machine's own changes reach. Of turns compared one by
// one such changes meet both runs.
void withhold(PairVerdict& pair) {
  Comparison& result = pair.result;
  const bool far_apart = result.low > kApart || result.high < 1.0 / kApart;
  if (pair.doubts.empty() || result.paired || far_apart || result.verdict == Verdict::undecided) {
    return;
  }
  result.verdict = Verdict::undecided;
  result.reason = fmt::format(
      "{}; below a factor of {:.4g} the difference may be the machine's own. Measure both in one "
      "call, or repeat each",
      pair.doubts, kApart);
}

}  // namespace

bool is_disturbance(const Finding& finding) {
  return finding.severity != "note" &&
         std::find(kDisturbances.begin(), kDisturbances.end(), finding.name) != kDisturbances.end();
}

const RunSeries& PairJudge::series(const RunRecord& run) {
  const auto [place, fresh] = series_.try_emplace(run.id);
  if (!fresh) return place->second;
  place->second = run_series(store_.samples(run.id));
  if (place->second.seconds.empty()) place->second = epoch_series(run, store_.epochs(run.id));
  return place->second;
}

std::optional<LogMedian> PairJudge::median(const RunRecord& run) {
  const auto [place, fresh] = medians_.try_emplace(run.id);
  if (fresh && !series(run).seconds.empty()) place->second = log_median(series(run));
  return place->second;
}

// The run and its repetitions in other calls, without `other`: what is compared cannot tell how
// much repetitions differ.
std::vector<LogMedian> PairJudge::repetitions(const RunRecord& run, const RunRecord& other) {
  if (!complete_) {
    complete_ = store_.runs();
    std::erase_if(*complete_,
                  [](const RunRecord& each) { return each.status != RunStatus::complete; });
    std::reverse(complete_->begin(), complete_->end());
  }
  std::vector<LogMedian> medians;
  std::set<std::string> calls;
  for (const RunRecord& found : *complete_) {
    if (medians.size() >= kMostRepetitions) break;
    if (found.id == other.id || way_of(found) != way_of(run) || !repeats(found, run)) continue;
    // Of one call one run: those side by side share the machine's mood.
    if (!found.group.empty() && !calls.insert(found.group).second) continue;
    if (const auto known = median(found)) medians.push_back(*known);
  }
  return medians;
}

std::optional<NoiseFloor> PairJudge::floor_under(const RunRecord& a, const RunRecord& b) {
  std::vector<std::vector<LogMedian>> groups = {repetitions(a, b)};
  if (!repeats(a, b)) groups.push_back(repetitions(b, a));
  return noise_floor(groups);
}

const std::vector<std::string>& PairJudge::disturbances(RunId run) {
  const auto [place, fresh] = disturbances_.try_emplace(run);
  if (!fresh) return place->second;
  for (const Finding& finding : store_.findings(run)) {
    if (is_disturbance(finding)) place->second.push_back(finding.name);
  }
  return place->second;
}

std::string PairJudge::doubts_about(const RunRecord& a, const RunRecord& b,
                                    const PairVerdict& pair) {
  std::vector<std::string> doubts;
  if (way_of(a) != way_of(b)) doubts.push_back("measured in different ways");
  if (!pair.side_by_side && !pair.floor) {
    doubts.push_back("measured in different calls and never repeated");
  }
  std::set<std::string> flags;
  for (const RunRecord* run : {&a, &b}) {
    flags.insert(disturbances(run->id).begin(), disturbances(run->id).end());
  }
  if (!flags.empty()) {
    doubts.push_back("flagged: " +
                     joined(std::vector<std::string>(flags.begin(), flags.end()), ", "));
  }
  return joined(doubts, "; ");
}

std::optional<PairVerdict> PairJudge::judge(const RunRecord& a, const RunRecord& b,
                                            VerdictOptions options) {
  if (series(a).seconds.empty() || series(b).seconds.empty()) return std::nullopt;
  PairVerdict pair;
  pair.side_by_side = options.side_by_side = took_turns(a, b);
  if (!pair.side_by_side) pair.floor = floor_under(a, b);
  pair.per_sample = a.work.batch != b.work.batch;
  const auto times = [&](const RunRecord& run) {
    return scaled(series(run), pair.per_sample ? 1.0 / static_cast<double>(run.work.batch) : 1.0);
  };
  pair.result = compare(times(a), times(b), options, pair.floor);
  pair.basis = way_of(a) == Way::training ? "epochs"
               : pair.result.paired       ? "iterations, turn by turn"
                                          : "iterations";
  pair.doubts = doubts_about(a, b, pair);
  withhold(pair);
  return pair;
}

}  // namespace ridgeline
