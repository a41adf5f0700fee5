// Predicted against measured iterations, each run left out in turn.

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "report/analysis/held_runs.h"
#include "report/analysis/prose.h"
#include "report/exhibits/figure_kinds.h"
#include "report/exhibits/figure_runs.h"
#include "report/exhibits/figure_values.h"

namespace ridgeline::report {
namespace {

using predict::HeldBack;

std::string series_name(const HeldBack& one) {
  return fmt::format("{}, {} left out", backend_words(one), predict::name_of(one.unknown));
}

// Of each backend what is drawn at first: networks that were left out, where there are any.
std::set<std::string> shown_series(const std::vector<HeldBack>& held) {
  std::map<std::string, std::map<int, std::string>> by_backend;
  for (const HeldBack& one : held) {
    const int rank = one.unknown == predict::Unknown::network  ? 0
                     : one.unknown == predict::Unknown::device ? 1
                                                               : 2;
    by_backend[backend_words(one)][rank] = series_name(one);
  }
  std::set<std::string> shown;
  for (const auto& [backend, names] : by_backend) shown.insert(names.begin()->second);
  return shown;
}

Point point_of(const HeldBack& one, const DisplayUnit& unit) {
  const predict::Observation& run = *one.observation;
  Point point{.x = run.seconds * unit.factor, .y = one.predicted_seconds * unit.factor};
  if (one.spread) {
    point.low = point.y / std::exp(*one.spread);
    point.high = point.y * std::exp(*one.spread);
  }
  point.detail =
      fmt::format("{}, batch {}, {}, {}", run.network, run.batch, run.precision, run.device);
  return point;
}

// Where predicted and measured are equal.
Series diagonal(const std::vector<HeldBack>& held, const DisplayUnit& unit) {
  const auto [least, most] = std::ranges::minmax_element(
      held, {}, [](const HeldBack& one) { return one.observation->seconds; });
  const double low = least->observation->seconds * unit.factor / 1.3;
  const double high = most->observation->seconds * unit.factor * 1.3;
  return {.name = "predicted = measured",
          .style = SeriesStyle::roof,
          .points = {{.x = low, .y = low}, {.x = high, .y = high}}};
}

// "Predictions of native on CPU with the network left out are 9% off in the median, and 90% of the
// runs lie in their range."
std::string reading_of_shown(const std::vector<HeldBack>& held,
                             const std::set<std::string>& shown) {
  std::vector<std::string> parts;
  for (const predict::CheckRow& row : predict::check_rows(held)) {
    const auto one = std::ranges::find_if(held, [&](const HeldBack& each) {
      return each.observation->family == row.family && each.observation->backend == row.backend &&
             each.unknown == row.unknown;
    });
    if (!shown.contains(series_name(*one))) continue;
    parts.push_back(fmt::format(
        "those of {} with the {} left out are {} off in the median{}", backend_words(*one),
        predict::name_of(row.unknown), percent_text(row.median_error),
        row.inside_share ? fmt::format(" (in the range: {})", percent_text(*row.inside_share))
                         : ""));
  }
  return fmt::format("Of the predictions, {}.", list_text(parts, 4));
}

}  // namespace

std::vector<Figure> predictions_figures(const ExhibitInput& input) {
  const std::vector<HeldBack> held = input.data.held_runs().of(input.runs);
  if (held.empty()) return {};
  Figure figure = new_figure(input, "Predicted against measured iterations", "");
  double longest = 0.0;
  for (const HeldBack& one : held) longest = std::max(longest, one.observation->seconds);
  const DisplayUnit unit = seconds_unit(longest);
  figure.x = {.title = "measured", .unit = unit.unit, .logarithmic = true};
  figure.y = {.title = "predicted", .unit = unit.unit, .logarithmic = true};
  figure.series.push_back(diagonal(held, unit));
  const std::set<std::string> shown = shown_series(held);
  std::set<RunId> runs;
  for (const HeldBack& one : held) {
    const std::string name = series_name(one);
    Series& series = series_named(figure, name, SeriesStyle::points);
    series.hidden = !shown.contains(name);
    series.points.push_back(point_of(one, unit));
    runs.insert(one.observation->run);
  }
  figure.runs.assign(runs.begin(), runs.end());
  figure.reading = reading_of_shown(held, shown);
  figure.caption =
      "Each dot is a run, predicted from runs without what was left out; its whisker is the range "
      "that nine of ten of the others' errors stay within. On the diagonal the two are equal.";
  std::vector<Figure> figures;
  put(figures, std::move(figure));
  return figures;
}

}  // namespace ridgeline::report
