// Lines, points and roofs over two axes.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "report/plot/frame.h"
#include "report/plot/places.h"
#include "report/plot/text_size.h"

namespace ridgeline::report::plot {
namespace {

constexpr double kXyHeight = 450.0;
constexpr std::size_t kMostLabels = 40;
constexpr std::size_t kBandFrom = 31;   // points: whiskers would run into each other
constexpr std::size_t kDotsFrom = 200;  // points: their marks could not be told apart

bool is_roof(const Series& series) { return series.style == SeriesStyle::roof; }
bool has_marks(const Series& series) {
  return series.style == SeriesStyle::points || series.style == SeriesStyle::line_points ||
         series.points.size() == 1;  // a line of one point would not be seen
}
bool has_line(const Series& series) { return series.style != SeriesStyle::points; }

// Series of a group share its colour and differ by marks and dashes.
std::vector<Entry> looks_of(const Figure& figure, const Colours& colours) {
  const std::vector<Paint> paints = colours.of(figure.series);
  std::map<std::string, int> sharing;
  std::vector<Entry> looks;
  int marks = 0;
  for (std::size_t i = 0; i < paints.size(); ++i) {
    const Series& series = figure.series[i];
    Entry look{series.name, paints[i], has_line(series)};
    look.in_files = !is_roof(series) && !series.hidden && !series.points.empty();
    if (!is_roof(series)) {
      const int turn = sharing[look.paint.colour]++;
      // Marks tell series apart in print, too.
      const bool many = series.points.size() > kDotsFrom;
      if (has_marks(series)) look.marker = many ? turn % 2 : series.group.empty() ? marks : turn;
      if (look.marker < 0) look.dash = turn % 4;
      ++marks;
    }
    looks.push_back(std::move(look));
  }
  return looks;
}

struct Scales {
  Scale x, y;
  std::size_t left_out = 0;
  std::set<double> xs;

  [[nodiscard]] bool take(const Point& point) const { return x.takes(point.x) && y.takes(point.y); }
};

Scales scales_of(const Figure& figure) {
  Range x, y;
  Scales scales;
  scales.x.logarithmic = figure.x.logarithmic;
  scales.y.logarithmic = figure.y.logarithmic;
  for (const Series& series : figure.series) {
    for (const Point& point : series.points) {
      if (!std::isfinite(point.x) || !std::isfinite(point.y)) continue;
      if (!scales.take(point)) {
        ++scales.left_out;
        continue;
      }
      x.add(point.x);
      y.add(point.y);
      if (!is_roof(series)) scales.xs.insert(point.x);
      for (const auto& end : {point.low, point.high}) {
        if (end && scales.y.takes(*end)) y.add(*end);
      }
    }
  }
  scales.x = scale_of(figure.x, x, false);
  if (!figure.x.categories.empty()) {
    scales.x = {-0.5, static_cast<double>(figure.x.categories.size()) - 0.5};
  }
  scales.y = scale_of(figure.y, y, false);
  // Numbers that only order things need no zero.
  if (figure.x.categories.empty() && !figure.x.logarithmic && !figure.x.low && !x.empty() &&
      x.low() > 0.0 && x.high() > x.low()) {
    scales.x.low = std::max(scales.x.low, x.low() - 0.04 * (x.high() - x.low()));
  }
  return scales;
}

// Numbers, or the names of categories.
std::vector<Tick> x_ticks_of(const Figure& figure, const Scales& scales) {
  const std::vector<std::string>& names = figure.x.categories;
  if (names.empty()) return ticks_of(scales.x, 10, scales.xs);
  std::vector<Tick> ticks;
  const double room = (kWidth - 100.0) / static_cast<double>(names.size()) - 8.0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    ticks.push_back({static_cast<double>(i), shortened(names[i], std::max(room, 24.0), kSmall)});
  }
  return ticks;
}

struct Place {
  double x, y;
};
using Run = std::vector<Place>;

// Points as they can stand on the axes, in pixels; a new run after one that cannot.
std::vector<Run> runs_of(const Series& series, const Scales& scales) {
  std::vector<Run> runs(1);
  for (const Point& point : series.points) {
    if (scales.take(point)) {
      runs.back().push_back({scales.x.pixel(point.x), scales.y.pixel(point.y)});
    } else if (!runs.back().empty()) {
      runs.emplace_back();
    }
  }
  if (runs.back().empty()) runs.pop_back();
  return runs;
}

std::string line_path(const std::vector<Run>& runs, bool steps) {
  std::string d;
  for (const Run& run : runs) {
    if (run.size() < 2) continue;
    char command = 'M';
    for (const auto& [x, y] : run) {
      d += steps && command == 'L' ? fmt::format("H{}V{}", px(x), px(y))
                                   : fmt::format("{}{} {}", command, px(x), px(y));
      command = 'L';
    }
  }
  return d;
}

std::string marks_path(const std::vector<Run>& runs, int marker, double radius) {
  std::string d;
  for (const Run& run : runs) {
    for (const auto& [x, y] : run) d += mark_path(marker, x, y, radius);
  }
  return d;
}

// Short lines, which their round or square ends make dots, each from the one before. Of those on
// one pixel one is seen.
std::string dots_path(const std::vector<Run>& runs) {
  std::set<std::pair<long, long>> dots;
  std::pair<long, long> last = {0, 0};
  std::string d;
  for (const Run& run : runs) {
    for (const auto& [x, y] : run) {
      const auto [dot, is_new] = dots.emplace(std::lround(x), std::lround(y));
      if (!is_new) continue;
      const long down = dot->second - last.second;
      d += fmt::format("m{}{}{}h1", dot->first - last.first, down < 0 ? "" : " ", down);
      last = {dot->first + 1, dot->second};
    }
  }
  return d;
}

// Whiskers, or a band where they would run into each other.
void draw_intervals(Svg& svg, const Series& series, const Entry& look, const Scales& scales) {
  std::string whiskers, upper, lower;
  std::size_t count = 0;
  for (const Point& point : series.points) {
    if (!point.low || !point.high || !scales.take(point) || !scales.y.takes(*point.high)) continue;
    const double x = scales.x.pixel(point.x), high = scales.y.pixel(*point.high);
    const double low = scales.y.pixel(scales.y.takes(*point.low) ? *point.low : scales.y.low);
    upper += fmt::format("{}{} {}", count++ == 0 ? 'M' : 'L', px(x), px(high));
    lower.insert(0, fmt::format("L{} {}", px(x), px(low)));
    if (low - high >= 3.0) whiskers += whisker(x, low, high, true);
  }
  if (count >= kBandFrom && has_line(series)) {
    svg.path(upper + lower + 'z', filled(look.paint.colour, 0.18));
  } else if (!whiskers.empty()) {
    svg.path(whiskers, stroked(look.paint.colour, 1.2));
  }
}

void draw_series(Svg& svg, const Series& series, const Entry& look, const Scales& scales) {
  const std::vector<Run> runs = runs_of(series, scales);
  const std::string line =
      has_line(series) ? line_path(runs, series.style == SeriesStyle::step) : "";
  if (is_roof(series)) {
    if (!line.empty()) svg.path(line, stroked(look.paint.colour, 1.6, 0.8));
    return;
  }
  draw_intervals(svg, series, look, scales);
  if (!line.empty()) {
    svg.path(line, R"(class="stroke" stroke-linejoin="round" )" +
                       stroked(look.paint.colour, 2.0, 1.0, look.dash));
  }
  if (look.marker < 0) return;
  const bool many = series.points.size() > kDotsFrom;
  const double radius = series.points.size() > 60 ? 2.8 : 4.0;
  const std::string marks = many ? dots_path(runs) : marks_path(runs, look.marker, radius);
  if (marks.empty()) return;
  const std::string paint =
      many ? fmt::format(R"(stroke-linecap="{}" {})", look.marker == 0 ? "round" : "square",
                         stroked(look.paint.colour, 2.6))
           : fmt::format(R"(stroke="{}" stroke-width="1.6" paint-order="stroke" {})", kPaper,
                         filled(look.paint.colour));
  svg.path(marks, R"(class="marks" )" + paint);
}

// The part of a straight line within the box; nothing: it lies outside.
struct Segment {
  double x1, y1, x2, y2;
};
std::optional<Segment> clipped(const Segment& line, const Box& box) {
  double from = 0.0, to = 1.0;
  const double dx = line.x2 - line.x1, dy = line.y2 - line.y1;
  const double directions[] = {-dx, dx, -dy, dy};
  const double distances[] = {line.x1 - box.left, box.right - line.x1, line.y1 - box.top,
                              box.bottom - line.y1};
  for (int side = 0; side < 4; ++side) {
    if (directions[side] == 0.0) {
      if (distances[side] < 0.0) return {};
      continue;
    }
    const double at = distances[side] / directions[side];
    if (directions[side] < 0.0) {
      from = std::max(from, at);
    } else {
      to = std::min(to, at);
    }
  }
  if (from >= to) return {};
  return Segment{line.x1 + from * dx, line.y1 + from * dy, line.x1 + to * dx, line.y1 + to * dy};
}

std::vector<Segment> segments_of(const Series& series, const Scales& scales, const Box& frame) {
  std::vector<Segment> segments;
  for (const Run& run : runs_of(series, scales)) {
    for (std::size_t i = 1; i < run.size(); ++i) {
      const auto inside = clipped({run[i - 1].x, run[i - 1].y, run[i].x, run[i].y}, frame);
      if (inside) segments.push_back(*inside);
    }
  }
  return segments;
}

void name_roof(Svg& svg, Places& places, const Series& series, const Entry& look,
               const Scales& scales, const Box& frame) {
  const std::vector<Segment> segments = segments_of(series, scales, frame);
  const TextStyle style{.size = kSmall - 0.5, .colour = look.paint.colour, .halo = true};
  const std::string name = shortened(series.name, 0.5 * (frame.right - frame.left), kSmall);
  for (const Segment& line : segments) {
    if (places.label_along(svg, line.x1, line.y1, line.x2, line.y2, name, style)) return;
  }
  for (const Segment& line : segments) {
    for (const double share : {0.5, 0.25, 0.75, 0.1, 0.9}) {
      if (places.label(svg, line.x1 + share * (line.x2 - line.x1),
                       line.y1 + share * (line.y2 - line.y1), 4.0, name, style)) {
        return;
      }
    }
  }
}

void name_points(Svg& svg, Places& places, const Series& series, const Scales& scales,
                 std::size_t& drawn) {
  for (const Point& point : series.points) {
    if (point.label.empty() || drawn == kMostLabels || !scales.take(point)) continue;
    drawn += places.label(svg, scales.x.pixel(point.x), scales.y.pixel(point.y), 5.0,
                          shortened(point.label, 320.0, kSmall - 1.0),
                          {.size = kSmall - 1.0, .halo = true});
  }
}

// What labels keep clear of: lines and marks of all series.
Places taken_places(const Figure& figure, const std::vector<Entry>& looks, const Scales& scales,
                    const Box& frame) {
  Places places(frame);
  for (std::size_t i = 0; i < looks.size(); ++i) {
    const Series& series = figure.series[i];
    if (series.hidden) continue;
    if (has_line(series)) {
      for (const Segment& line : segments_of(series, scales, frame)) {
        places.take_line(line.x1, line.y1, line.x2, line.y2, 1.5);
      }
    }
    if (looks[i].marker < 0) continue;
    for (const Run& run : runs_of(series, scales)) {
      for (const auto& [x, y] : run) places.take({x - 4.0, y - 4.0, x + 4.0, y + 4.0});
    }
  }
  return places;
}

// Roofs behind the data; what is hidden at first comes last, so that its names take no place from
// what is seen.
std::vector<std::size_t> order_of(const Figure& figure) {
  std::vector<std::size_t> order(figure.series.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto rank = [&](std::size_t index) {
    return std::pair(figure.series[index].hidden, !is_roof(figure.series[index]));
  };
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  return order;
}

void draw_all(Svg& svg, const Figure& figure, const std::vector<Entry>& looks, const Scales& scales,
              const Box& frame) {
  Places places = taken_places(figure, looks, scales, frame);
  std::size_t named = 0;
  for (const std::size_t i : order_of(figure)) {
    const Series& series = figure.series[i];
    const auto points = std::ranges::count_if(
        series.points, [&](const Point& point) { return scales.take(point); });
    svg.open(series_group(figure, i, static_cast<std::size_t>(points),
                          is_roof(series) ? "roof-line" : "series"));
    draw_series(svg, series, looks[i], scales);
    if (is_roof(series)) {
      name_roof(svg, places, series, looks[i], scales, frame);
    } else {
      name_points(svg, places, series, scales, named);
    }
    svg.close();
  }
}

}  // namespace

Drawing draw_xy(const Figure& figure, const Colours& colours) {
  Scales scales = scales_of(figure);
  Drawing drawing{.height = kXyHeight, .legend = looks_of(figure, colours)};
  note_left_out(drawing.notes, scales.left_out);
  Svg svg;
  const Box frame = draw_frame(svg,
                               {.height = kXyHeight,
                                .x = {title_of(figure.x), x_ticks_of(figure, scales)},
                                .y = {title_of(figure.y), ticks_of(scales.y, 7)}},
                               scales.x, scales.y);
  // Marks at the ends of the axes are whole.
  svg.clip({frame.left - 7.0, frame.top - 7.0, frame.right + 7.0, frame.bottom + 7.0});
  draw_all(svg, figure, drawing.legend, scales, frame);
  svg.unclip();
  drawing.data = scale_data(scales.x, scales.y);
  drawing.elements = std::move(svg).text();
  return drawing;
}

}  // namespace ridgeline::report::plot
