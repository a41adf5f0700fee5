#include "analysis/compare/run_series.h"

#include <algorithm>
#include <map>

namespace ridgeline {
namespace {

struct Times {
  double first = 0.0, last = 0.0;
};

std::map<std::int64_t, Times> times_of_turns(const RunSeries& series) {
  std::map<std::int64_t, Times> turns;
  for (std::size_t i = 0; i < series.turn.size(); ++i) {
    const double at = series.at_seconds[i];
    const auto [turn, fresh] = turns.try_emplace(series.turn[i], Times{at, at});
    turn->second.first = std::min(turn->second.first, at);
    turn->second.last = std::max(turn->second.last, at);
  }
  return turns;
}

}  // namespace

RunSeries run_series(std::span<const Sample> samples, double scale) {
  RunSeries series;
  for (const Sample& sample : samples) {
    if (sample.kind != SampleKind::measured) continue;
    series.seconds.push_back(scale * sample.wall_seconds);
    series.turn.push_back((sample.process << 32) + sample.block);
    series.process.push_back(sample.process);
    series.at_seconds.push_back(sample.at_seconds);
  }
  return series;
}

std::vector<EpochRecord> steady_epochs(std::vector<EpochRecord> epochs) {
  std::erase_if(
      epochs, [](const EpochRecord& epoch) { return epoch.seconds <= 0.0 || epoch.samples <= 0; });
  if (epochs.size() > 1) epochs.erase(epochs.begin());
  return epochs;
}

std::vector<std::int64_t> shared_turns(const RunSeries& a, const RunSeries& b) {
  const auto turns_a = times_of_turns(a), turns_b = times_of_turns(b);
  std::vector<std::int64_t> shared;
  double over = -1.0;  // when the turn before had ended in both
  std::int64_t process = -1;
  for (const auto& [turn, times] : turns_a) {
    const auto other = turns_b.find(turn);
    if (other == turns_b.end()) continue;
    // Processes follow each other, each with a clock of its own.
    if (process_of(turn) != process) over = -1.0;
    process = process_of(turn);
    if (std::min(times.first, other->second.first) < over) return {};
    over = std::max(times.last, other->second.last);
    shared.push_back(turn);
  }
  return shared;
}

}  // namespace ridgeline
