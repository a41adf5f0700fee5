#include "cli/scaling_output.h"

#include <algorithm>

#include "base/text.h"
#include "cli/tables.h"
#include "documents/bench.h"

namespace ridgeline::cli {
namespace {

std::string percent(double share) { return fmt::format("{:.1f}%", 100.0 * share); }

std::string interval_text(const ScaledRatio& ratio) {
  return fmt::format("{} to {}{}", percent(ratio.low), percent(ratio.high),
                     ratio.range ? " (range)" : "");
}

// What of the exchange is hidden behind computing.
std::string hidden_text(const MeasuredSummary& summary) {
  if (!summary.exchange_seconds || *summary.exchange_seconds <= 0.0) return "-";
  const double exposed = summary.exposed_seconds.value_or(0.0) / *summary.exchange_seconds;
  return fmt::format("{:.0f}%", 100.0 * std::clamp(1.0 - exposed, 0.0, 1.0));
}

std::string milliseconds_text(const std::optional<double>& seconds) {
  return seconds ? fmt::format("{:.3g}", *seconds * 1e3) : "-";
}

std::vector<std::string> cells_of(const BenchReport& report, const ScalingPoint& point) {
  const Measured& measured = report.results[point.run];
  const Executor& executor = measured.subject.executor;
  const MeasuredSummary summary = summarise(measured);
  const bool base = point.run == point.base;
  const auto slow = number_of(measured, "slow_rank_share");
  return {
      measured.subject.work.model,
      executor.backend,
      point.weak ? "weak" : "strong",
      fmt::format("{}{}", executor.ranks, executor.transport == kUnconnected ? " unconnected" : ""),
      fmt::format("{}", measured.subject.work.batch),
      fmt::format("{:.2f}x", point.speedup),
      percent(point.efficiency.value),
      base ? "-" : interval_text(point.efficiency),
      point.of_unconnected ? percent(point.of_unconnected->value) : "-",
      point.of_unconnected ? interval_text(*point.of_unconnected) : "-",
      milliseconds_text(summary.exchange_seconds),
      milliseconds_text(summary.exposed_seconds),
      hidden_text(summary),
      slow ? fmt::format("+{:.1f}%", 100.0 * std::max(0.0, *slow)) : "-"};
}

}  // namespace

std::string scaling_text(const BenchReport& report) {
  const std::vector<ScalingPoint> points = scaling_of(report);
  if (points.empty()) return {};
  TextTable table(
      {"model", "backend", "scaling", "ranks", "batch", "speed-up", "efficiency", "95% interval",
       "of unconnected", "its interval", "exchange ms", "exposed ms", "hidden", "slowest rank"},
      "lllrrrrrrrrrrr");
  table.important({"ranks", "efficiency", "95% interval", "speed-up", "exposed ms",
                   "of unconnected", "hidden", "scaling", "model", "backend", "batch",
                   "its interval", "exchange ms", "slowest rank"});
  bool weak = false, strong = false, unconnected = false;
  for (const ScalingPoint& point : points) {
    table.add_row(cells_of(report, point));
    (point.weak ? weak : strong) = true;
    unconnected = unconnected || point.of_unconnected;
  }
  std::string text =
      "speed-up: samples per second, over those of the fewest ranks; efficiency: the same for each "
      "rank (100%: more ranks lose nothing)\n";
  if (strong) text += "strong: the ranks share one batch; each computes less, the more there are\n";
  if (weak) text += "weak: each rank has a batch of the same size\n";
  text +=
      "exchange: time of a step in which ranks sum gradients, waiting for each other counted; "
      "exposed: the part in which they compute nothing; hidden: the rest\n";
  if (unconnected) {
    text +=
        "of unconnected: speed as a share of as many processes that compute at the same time and "
        "exchange nothing\n";
  }
  text += "slowest rank: how much longer it computes than the others do in the median\n";
  return shown(table) + fitted(text) + '\n';
}

}  // namespace ridgeline::cli
