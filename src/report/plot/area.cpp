// Areas on top of each other over a common axis.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "report/plot/frame.h"

namespace ridgeline::report::plot {
namespace {

constexpr double kAreaHeight = 380.0;

std::vector<Point> drawable(const Series& series, bool logarithmic) {
  std::vector<Point> points;
  for (const Point& point : series.points) {
    if (!std::isfinite(point.x) || !std::isfinite(point.y)) continue;
    if (!logarithmic || point.x > 0.0) points.push_back(point);
  }
  std::ranges::stable_sort(points, {}, &Point::x);
  return points;
}

// Nothing before the first point and after the last one.
double value_at(const std::vector<Point>& points, double x) {
  const auto after = std::ranges::lower_bound(points, x, {}, &Point::x);
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

// What a layer covers at one place.
struct Slice {
  double x, low, high;
};

struct Layer {
  std::vector<Point> points;
  bool steps = false;
  std::vector<Slice> slices = {};
};

std::vector<Layer> layers_of(const Figure& figure) {
  std::vector<Layer> layers;
  std::set<double> places;
  for (const Series& series : figure.series) {
    layers.push_back({drawable(series, figure.x.logarithmic), series.style == SeriesStyle::step});
    for (const Point& point : layers.back().points) places.insert(point.x);
  }
  // Each layer stands on the sum of those before it.
  for (auto place = places.begin(); place != places.end(); ++place) {
    // Where levels jump, the place has two sides.
    for (const bool before : {true, false}) {
      if (before && place == places.begin()) continue;
      double sum = 0.0;
      for (Layer& layer : layers) {
        const double at = before ? *std::prev(place) : *place;
        const double value =
            layer.steps ? level_at(layer.points, at) : value_at(layer.points, *place);
        layer.slices.push_back({*place, sum, sum + value});
        sum += value;
      }
    }
  }
  return layers;
}

std::string area_path(const Layer& layer, const Scale& x, const Scale& y) {
  std::string upper, lower;
  std::vector<Slice> seen;
  for (const Slice& slice : layer.slices) {
    // A tenth of a pixel further on nothing new is to be seen.
    const bool same = !seen.empty() && px(x.pixel(seen.back().x)) == px(x.pixel(slice.x)) &&
                      seen.back().low == slice.low && seen.back().high == slice.high;
    if (!same) seen.push_back(slice);
  }
  for (auto slice = seen.begin(); slice != seen.end(); ++slice) {
    upper += fmt::format("{}{} {}", upper.empty() ? 'M' : 'L', px(x.pixel(slice->x)),
                         px(y.pixel(slice->high)));
  }
  for (auto slice = seen.rbegin(); slice != seen.rend(); ++slice) {
    lower += fmt::format("L{} {}", px(x.pixel(slice->x)), px(y.pixel(slice->low)));
  }
  return upper + lower + 'z';
}

}  // namespace

Drawing draw_area(const Figure& figure, const Colours& colours) {
  const std::vector<Layer> layers = layers_of(figure);
  Range xs, ys;
  for (const Layer& layer : layers) {
    for (const Slice& slice : layer.slices) {
      xs.add(slice.x);
      ys.add(slice.high);
    }
  }
  // Layers are sums: a logarithmic axis would misstate them.
  Axis y_axis = figure.y;
  y_axis.logarithmic = false;
  Scale x = scale_of(figure.x, xs, false), y = scale_of(y_axis, ys, true);
  if (!figure.x.logarithmic && xs.low() < xs.high()) {
    x.low = figure.x.low.value_or(xs.low());
    x.high = figure.x.high.value_or(xs.high());
  }
  Drawing drawing{.height = kAreaHeight};
  Svg svg;
  const Box frame = draw_frame(svg,
                               {.height = kAreaHeight,
                                .x = {title_of(figure.x), ticks_of(x, 9)},
                                .y = {title_of(figure.y), ticks_of(y, 7)}},
                               x, y);
  svg.clip(frame);
  const std::vector<Paint> paints = colours.of(figure.series);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const Series& series = figure.series[i];
    drawing.legend.push_back({.name = series.name,
                              .paint = paints[i],
                              .in_files = !series.hidden && !series.points.empty()});
    svg.open(series_group(figure, i, layers[i].points.size()));
    if (!layers[i].points.empty()) {
      svg.path(area_path(layers[i], x, y),
               R"(class="layer" )" + filled(paints[i].colour, 0.85 * paints[i].shade));
    }
    svg.close();
  }
  svg.unclip();
  drawing.data = scale_data(x, y);
  drawing.elements = std::move(svg).text();
  return drawing;
}

}  // namespace ridgeline::report::plot
