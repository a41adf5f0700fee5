// Efficiency over the number of ranks.

#include <algorithm>
#include <map>

#include "base/error.h"
#include "report/analysis/prose.h"
#include "report/exhibits/figure_kinds.h"
#include "report/exhibits/figure_runs.h"
#include "report/exhibits/scaling.h"

namespace ridgeline::report {
namespace {

// Lines of weak scaling are known by the batch of each rank.
std::string series_name(const Names& names, const ScaledRun& scaled) {
  const std::int64_t batch = scaled.run->run.work.batch;
  std::string name = names.of(*scaled.run);
  const bool unconnected = scaled.run->run.executor.transport == kUnconnected;
  if (unconnected && name.find(kUnconnected) == std::string::npos) {
    name += fmt::format(", {}", kUnconnected);
  }
  if (!scaled.point.weak) return fmt::format("strong, batch {}: {}", batch, name);
  return fmt::format("weak, {} for each rank: {}", batch / scaled.run->run.executor.ranks, name);
}

// The run with the most ranks whose efficiency is the lowest, and what it exchanges for.
std::string reading_of_scaling(const std::vector<ScaledRun>& scaled) {
  int most = 1;
  for (const ScaledRun& each : scaled) most = std::max(most, each.run->run.executor.ranks);
  const ScaledRun *best = nullptr, *worst = nullptr;
  for (const ScaledRun& each : scaled) {
    const Executor& executor = each.run->run.executor;
    if (executor.ranks != most || each.run == each.base) continue;
    if (executor.transport == kUnconnected) continue;
    const auto better = [](const ScaledRun* a, const ScaledRun* b) {
      return a->point.efficiency.value > b->point.efficiency.value;
    };
    if (best == nullptr || better(&each, best)) best = &each;
    if (worst == nullptr || better(worst, &each)) worst = &each;
  }
  if (best == nullptr) return {};
  const auto text = [](const ScaledRun& each) {
    const ScaledRatio& share = each.point.efficiency;
    return fmt::format("{} {} {:.0f}% [{:.0f}–{:.0f}]", each.run->run.work.model,
                       each.point.weak ? "(weak)" : "(strong)", 100.0 * share.value,
                       100.0 * share.low, 100.0 * share.high);
  };
  if (best == worst) {
    return fmt::format("With {} ranks each rank keeps of the speed of one alone: {}.", most,
                       text(*best));
  }
  return fmt::format(
      "With {} ranks each rank keeps at most {} and at least {} of the speed of the "
      "fewest ranks.",
      most, text(*best), text(*worst));
}

}  // namespace

std::vector<Figure> scaling_figures(const ExhibitInput& input) {
  std::vector<ScaledRun> scaled = scaled_runs(input.data, input.runs);
  std::vector<Figure> figures;
  if (scaled.empty()) return figures;
  Runs runs;
  for (const ScaledRun& each : scaled) {
    if (each.run != each.base) runs.push_back(each.run);
  }
  Figure figure = new_figure(input, "Efficiency over ranks", "");
  figure.x = {.title = "ranks", .logarithmic = true};
  figure.y = {.title = "efficiency", .unit = "%", .low = 0.0};
  const Names names(input.data, runs, {"ranks", "batch"});
  Notes notes(input.data);
  double most = 1.0, fewest = 1e9;
  for (const ScaledRun& each : scaled) {
    if (each.run == each.base) continue;
    const std::string name = series_name(names, each);
    const ScaledRatio& share = each.point.efficiency;
    const auto ranks = static_cast<double>(each.run->run.executor.ranks);
    const auto first = static_cast<double>(each.base->run.executor.ranks);
    Series& series = series_named(figure, name, SeriesStyle::line_points);
    if (series.points.empty()) {
      series.points.push_back({.x = first, .y = 100.0});
      notes.add(*each.base, name);
    }
    series.points.push_back({.x = ranks,
                             .y = 100.0 * share.value,
                             .low = 100.0 * share.low,
                             .high = 100.0 * share.high});
    most = std::max(most, ranks);
    fewest = std::min(fewest, first);
    notes.add(*each.run, name);
  }
  for (Series& series : figure.series) std::ranges::sort(series.points, {}, &Point::x);
  figure.series.push_back({.name = "no loss",
                           .style = SeriesStyle::roof,
                           .points = {{.x = fewest, .y = 100.0}, {.x = most, .y = 100.0}}});
  notes.write(figure);
  figure.reading = reading_of_scaling(scaled);
  figure.caption =
      "Samples a second for each rank, over those of the fewest ranks, with 95% intervals. Strong: "
      "all ranks share the same batch. Weak: each rank has a batch of the same size. Unconnected "
      "processes compute at the same time and exchange nothing: what they lose is the machine's, "
      "not the exchange's." +
      common_text(input.data, runs, {"model", "executor", "ranks", "batch"});
  put(figures, std::move(figure));
  return figures;
}

}  // namespace ridgeline::report
