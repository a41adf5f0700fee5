// Where an iteration's time goes: parts, kinds of operations, span by span.

#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"
#include "base/parse.h"
#include "base/text.h"
#include "report/exhibits/figure_kinds.h"
#include "report/exhibits/figure_runs.h"
#include "report/exhibits/figure_values.h"

namespace ridgeline::report {
namespace {

struct Part {
  const char *number, *name;
};
constexpr std::array<Part, 6> kParts = {{{"breakdown_kernel_seconds", "kernel"},
                                         {"breakdown_copy_seconds", "memory copy"},
                                         {"breakdown_runtime_seconds", "runtime and launch"},
                                         {"breakdown_data_seconds", "data loading"},
                                         {"breakdown_cpu_seconds", "cpu (the host's own work)"},
                                         {"breakdown_idle_seconds", "idle and other"}}};

double iteration_seconds(const RunView& run) {
  double sum = 0.0;
  for (const Part& part : kParts) sum += number_of(run, part.number).value_or(0.0);
  return sum;
}

// Bars of one figure; more are split by network.
constexpr std::size_t kMostBars = 16;

// Kinds of operations that executors can be compared in, heaviest first: a step
// with several ops belongs to the first of them.
struct Kind {
  const char *op, *name;
};
constexpr std::array<Kind, 18> kKinds = {{{"conv2d", "convolution"},
                                          {"linear", "dense layer"},
                                          {"bn_", "batch norm"},
                                          {"pool", "pooling"},
                                          {"softmax_cross_entropy", "softmax and loss"},
                                          {"metrics", "softmax and loss"},
                                          {"activation", "activation"},
                                          {"bias", "bias"},
                                          {"add", "add and concat"},
                                          {"concat", "add and concat"},
                                          {"slice", "add and concat"},
                                          {"dropout", "dropout"},
                                          {"sgd", "parameter update"},
                                          {"adam", "parameter update"},
                                          {"normalize", "input"},
                                          {"reorder", "layout and casts"},
                                          {"cast", "layout and casts"},
                                          {"reshape", "layout and casts"}}};

std::string kind_of(const StepTime& step) {
  if (step.phase.find('+') != std::string::npos) return "whole step in one kernel";
  const bool backward = step.phase.starts_with("backward") || step.phase == "recompute";
  const std::vector<std::string_view> ops = pieces_of(step.ops, "+");
  for (const Kind& kind : kKinds) {
    const bool found =
        std::ranges::any_of(ops, [&](std::string_view op) { return op.starts_with(kind.op); });
    if (!found) continue;
    const bool directed = std::string_view(kind.name) != "layout and casts";
    return std::string(kind.name) + (backward && directed ? ", backward" : "");
  }
  return "other";
}

// Of what lies between steps nothing is known but its length: it is not drawn.
std::map<std::string, double> seconds_by_kind(const Data& data, const RunView& run) {
  std::map<std::string, double> seconds;
  for (const StepTime& step : data.store().steps(run.run.id)) {
    seconds[kind_of(step)] += step.seconds;
  }
  return seconds;
}

using KindTimes = std::map<const RunView*, std::map<std::string, double>>;

// Kinds by the share of time that they take, the greatest first; those that take next to none of
// any run's time become one. `most`: the longest time.
std::vector<std::string> merge_kinds(const Runs& runs, KindTimes& times, double& most) {
  constexpr double kNextToNone = 0.005;
  std::map<std::string, double> sums, greatest;
  for (const RunView* run : runs) {
    double total = 0.0;
    for (const auto& [kind, seconds] : times[run]) total += seconds;
    for (const auto& [kind, seconds] : times[run]) {
      sums[kind] += seconds / total;
      greatest[kind] = std::max(greatest[kind], seconds / total);
      most = std::max(most, seconds);
    }
  }
  std::vector<std::string> kinds;
  for (const auto& [kind, share] : greatest) {
    if (share >= kNextToNone && kind != "other") {
      kinds.push_back(kind);
      continue;
    }
    for (const RunView* run : runs) {
      const auto small = times[run].find(kind);
      if (kind == "other" || small == times[run].end()) continue;
      times[run]["other"] += small->second;
    }
  }
  std::ranges::stable_sort(
      kinds, [&](const std::string& a, const std::string& b) { return sums[a] > sums[b]; });
  if (kinds.size() < greatest.size()) kinds.push_back("other");
  return kinds;
}

}  // namespace

std::vector<Figure> breakdown_figures(const ExhibitInput& input) {
  std::vector<Figure> figures;
  const Runs runs =
      chosen(input.runs, [](const RunView& run) { return iteration_seconds(run) > 0.0; });
  const FieldNames always =
      runs.size() > kMostBars ? FieldNames{"kind", "model"} : FieldNames{"kind"};
  for (const Share& share :
       split(input.data, runs, always, {"machine", "executor"},
             [](const Runs& r) { return r.size() > kMostBars ? kMostSeries + 1 : 1; })) {
    const Names names(input.data, share.runs, {"kind"});
    double least = 0.0, most = 0.0;
    for (const RunView* run : share.runs) {
      const double seconds = iteration_seconds(*run);
      least = least == 0.0 ? seconds : std::min(least, seconds);
      most = std::max(most, seconds);
    }
    // Bars of very different lengths are compared by their shares.
    const bool in_percent = most > 8.0 * least;
    const DisplayUnit scale = seconds_unit(most);
    Figure figure = new_figure(input, "Where an iteration's time goes", share.title);
    figure.kind = FigureKind::bars;
    figure.stacked = figure.horizontal = true;
    figure.y = {.title = in_percent ? "share of the iteration" : "time of an iteration",
                .unit = in_percent ? "%" : scale.unit,
                .low = 0.0};
    if (in_percent) figure.y.high = 100.0;
    Notes notes(input.data);
    for (const RunView* run : share.runs) {
      const double total = iteration_seconds(*run);
      const double x =
          category_of(figure.x, (in_percent ? duration_text(total) + ": " : "") + names.of(*run));
      for (const Part& part : kParts) {
        const double seconds = number_of(*run, part.number).value_or(0.0);
        series_named(figure, part.name, SeriesStyle::points)
            .points.push_back({.x = x,
                               .y = in_percent ? seconds / total * 100.0 : seconds * scale.factor,
                               .detail = fmt::format("{}, {:.1f}%", duration_text(seconds),
                                                     seconds / total * 100.0)});
      }
      notes.add(*run, names.of(*run));
    }
    // Parts in which no run spends time would only fill the legend.
    std::erase_if(figure.series, [](const Series& series) {
      return std::ranges::all_of(series.points, [](const Point& point) { return point.y == 0.0; });
    });
    figure.caption = fmt::format(
        "A watched iteration by what the time was spent on, mean of the middle ones: every moment "
        "belongs to one part, so that the parts add up to the iteration.{}",
        names.common());
    notes.write(figure);
    put(figures, std::move(figure));
  }
  return figures;
}

std::vector<Figure> operations_figures(const ExhibitInput& input) {
  std::vector<Figure> figures;
  KindTimes times;
  const Runs runs = chosen(input.runs, [&](const RunView& run) {
    times[&run] = seconds_by_kind(input.data, run);
    return !times[&run].empty();
  });
  for (const Share& share :
       split(input.data, largest_batches(runs), {"kind", "model"}, {"machine", "executor"})) {
    const Names names(input.data, share.runs, {"kind", "model"});
    double most = 0.0;
    const std::vector<std::string> kinds = merge_kinds(share.runs, times, most);
    const DisplayUnit scale = seconds_unit(most);
    Figure figure = new_figure(input, "Time by kind of operation", share.title);
    figure.kind = FigureKind::bars;
    figure.horizontal = true;
    figure.x.categories = kinds;
    figure.y = {.title = "time in an iteration", .unit = scale.unit};
    Notes notes(input.data);
    for (const RunView* run : share.runs) {
      Series& series = series_named(figure, names.of(*run), SeriesStyle::points);
      for (std::size_t i = 0; i < kinds.size(); ++i) {
        const auto found = times[run].find(kinds[i]);
        if (found == times[run].end() || found->second <= 0.0) continue;
        series.points.push_back({.x = static_cast<double>(i), .y = found->second * scale.factor});
      }
      notes.add(*run, series.name);
    }
    choose_y_axis(figure);
    figure.caption = fmt::format(
        "{}: time of the plan's steps by what they compute, forward and backward apart; mean of "
        "the middle iterations.{}{}",
        share.runs[0]->run.work.model,
        figure.y.logarithmic ? " The scale is logarithmic: equal distances are equal ratios." : "",
        names.common());
    figure.notes.push_back(
        "A step that computes several operations at once counts as the heaviest of them: a bias or "
        "an activation behind a convolution is part of the convolution, and an executor may have "
        "no such step of its own.");
    notes.write(figure);
    put(figures, std::move(figure));
  }
  return figures;
}

}  // namespace ridgeline::report
