// Areas on top of each other over a common axis.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "report/plot/draw.h"
#include "report/plot/sheet.h"

namespace ridgeline::report::plot {
namespace {

constexpr double kBodyHeight = 430.0;

std::vector<Point> finite(const Series& series) {
  std::vector<Point> points;
  for (const Point& point : series.points) {
    if (std::isfinite(point.x) && std::isfinite(point.y)) points.push_back(point);
  }
  std::stable_sort(points.begin(), points.end(),
                   [](const Point& a, const Point& b) { return a.x < b.x; });
  return points;
}

// Nothing before the first point and after the last one.
double value_at(const std::vector<Point>& points, double x) {
  const auto after = std::lower_bound(points.begin(), points.end(), x,
                                      [](const Point& point, double at) { return point.x < at; });
  if (after == points.end()) return 0.0;
  if (after->x == x) return after->y;
  if (after == points.begin()) return 0.0;
  const Point& before = *(after - 1);
  return before.y + (after->y - before.y) * (x - before.x) / (after->x - before.x);
}

// A level holds until the next one; the last one has no length of its own.
double level_at(const std::vector<Point>& points, double x) {
  const auto after = std::upper_bound(points.begin(), points.end(), x,
                                      [](double at, const Point& point) { return at < point.x; });
  return after == points.begin() ? 0.0 : (after - 1)->y;
}

}  // namespace

Drawing draw_area(const Figure& figure, const Colours& colours) {
  std::vector<std::string> notes;
  std::vector<Entry> legend;
  std::vector<std::vector<Point>> layers;
  std::vector<bool> steps;
  std::set<double> places;
  const auto shown = shown_series(figure, notes);
  const std::vector<std::string> own = colours.of(shown);
  for (const Series* series : shown) {
    legend.push_back({series->name, own[legend.size()], false, 0, 1});
    layers.push_back(finite(*series));
    steps.push_back(series->style == SeriesStyle::step);
    for (const Point& point : layers.back()) places.insert(point.x);
  }

  // Each layer stands on the sum of those before it.
  std::vector<std::vector<std::vector<double>>> bands(layers.size());
  Range xs, ys;
  for (auto place = places.begin(); place != places.end(); ++place) {
    xs.add(*place);
    // Where levels jump, the place has two sides.
    const bool jump = place != places.begin();
    for (const bool before : {true, false}) {
      if (before && !jump) continue;
      double sum = 0.0;
      for (std::size_t i = 0; i < layers.size(); ++i) {
        const double at = before ? *std::prev(place) : *place;
        const double value = steps[i] ? level_at(layers[i], at) : value_at(layers[i], *place);
        bands[i].push_back({*place, sum, sum + value});
        sum += value;
        ys.add(sum);
      }
    }
  }
  // The files show sums: a logarithmic axis would misstate the layers.
  Axis y_axis = figure.y;
  y_axis.logarithmic = false;
  Scale x = scale_of(figure.x, xs, false), y = scale_of(y_axis, ys, true);
  if (!figure.x.logarithmic && xs.low() < xs.high()) {
    x.low = figure.x.low.value_or(xs.low());
    x.high = figure.x.high.value_or(xs.high());
  }
  auto [canvas, body] = sheet_of(figure, legend, notes, kBodyHeight);
  const auto ticks = ticks_of(y, 7);
  const Box frame =
      frame_of(canvas, body, title_of(figure.x), title_of(figure.y), widest(ticks), 20.0);
  canvas.axes(frame, x, y);
  canvas.ticks('x', ticks_of(x, 9));
  canvas.ticks('y', ticks);
  for (std::size_t i = 0; i < bands.size(); ++i) {
    if (bands[i].empty()) continue;
    canvas.plot(canvas.data(bands[i]),
                fmt::format("using 1:2:3 with filledcurves fc rgb '{}' fs solid 1 noborder",
                            legend[i].colour));
  }
  return std::move(canvas).drawing();
}

}  // namespace ridgeline::report::plot
