// Lines, points and roofs over two axes.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "report/plot/draw.h"
#include "report/plot/places.h"
#include "report/plot/sheet.h"
#include "report/plot/text_size.h"

namespace ridgeline::report::plot {
namespace {

constexpr double kBodyHeight = 470.0;
constexpr std::size_t kMostLabels = 40;
constexpr std::size_t kBandFrom = 31;  // points: whiskers would run into each other

struct Look {
  const Series* series = nullptr;
  std::string colour;
  int marker = 0, dash = 1;
};

bool is_roof(const Series& series) { return series.style == SeriesStyle::roof; }
bool has_marks(const Series& series) {
  return series.style == SeriesStyle::points || series.style == SeriesStyle::line_points ||
         series.points.size() == 1;  // a line of one point would not be seen
}
bool has_line(const Series& series) { return series.style != SeriesStyle::points; }

// Series of a group share its colour and differ by marks and dashes.
std::vector<Look> looks_of(const std::vector<const Series*>& shown, const Colours& colours) {
  const std::vector<std::string> own = colours.of(shown);
  std::map<std::string, std::size_t> sharing;
  std::vector<Look> looks;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    Look look{shown[i], own[i], 0, 1};
    if (!is_roof(*shown[i])) {
      const std::size_t turn = sharing[own[i]]++;
      // Marks tell series apart in print, too.
      const bool alone = shown[i]->group.empty();
      if (has_marks(*shown[i])) look.marker = marker(alone ? looks.size() : turn);
      const bool line =
          shown[i]->style == SeriesStyle::line || shown[i]->style == SeriesStyle::step;
      if (line) look.dash = 1 + static_cast<int>(turn % 4);
    }
    looks.push_back(look);
  }
  return looks;
}

std::vector<Entry> legend_of(const std::vector<Look>& looks) {
  std::vector<Entry> legend;
  for (const Look& look : looks) {
    if (is_roof(*look.series)) continue;
    legend.push_back(
        {look.series->name, look.colour, has_line(*look.series), look.marker, look.dash});
  }
  return legend;
}

struct Scales {
  Scale x, y;
  std::size_t left_out = 0;
};

Scales scales_of(const Figure& figure, const std::vector<const Series*>& shown) {
  Range x, y;
  Scales scales;
  const auto takes = [](const Axis& axis, double value) {
    return std::isfinite(value) && (!axis.logarithmic || value > 0.0);
  };
  for (const Series* series : shown) {
    for (const Point& point : series->points) {
      if (!std::isfinite(point.x) || !std::isfinite(point.y)) continue;
      if (!takes(figure.x, point.x) || !takes(figure.y, point.y)) {
        ++scales.left_out;
        continue;
      }
      x.add(point.x);
      y.add(point.y);
      for (const auto& end : {point.low, point.high}) {
        if (end && takes(figure.y, *end)) y.add(*end);
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
std::vector<Tick> x_ticks_of(const Figure& figure, const Scale& scale) {
  const std::vector<std::string>& names = figure.x.categories;
  if (names.empty()) return ticks_of(scale, 10);
  std::vector<Tick> ticks;
  const double room = 840.0 / static_cast<double>(names.size()) - 8.0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    ticks.push_back({static_cast<double>(i), shortened(names[i], std::max(room, 24.0), 12.0)});
  }
  return ticks;
}

using Rows = std::vector<std::vector<double>>;

// Points as they can stand on the axes; a gap where one cannot.
Rows rows_of(const Series& series, const Scales& scales) {
  Rows rows;
  for (const Point& point : series.points) {
    if (scales.x.takes(point.x) && scales.y.takes(point.y)) {
      rows.push_back({point.x, point.y});
    } else if (!rows.empty() && !rows.back().empty()) {
      rows.emplace_back();
    }
  }
  return rows;
}

Rows intervals_of(const Series& series, const Scales& scales) {
  Rows rows;
  for (const Point& point : series.points) {
    if (!point.low || !point.high) continue;
    if (!scales.x.takes(point.x) || !scales.y.takes(point.y)) continue;
    const double low = scales.y.takes(*point.low) ? *point.low : scales.y.low;
    if (scales.y.takes(*point.high)) rows.push_back({point.x, low, *point.high});
  }
  return rows;
}

void plot_series(Canvas& canvas, const Look& look, const Scales& scales) {
  const Series& series = *look.series;
  const Rows rows = rows_of(series, scales);
  if (rows.empty()) return;
  const std::string block = canvas.data(rows);
  if (is_roof(series)) {
    canvas.plot(block,
                fmt::format("using 1:2 with lines lc rgb '{}' lw 1.6", lighter(look.colour, 0.25)));
    return;
  }
  const Rows intervals = intervals_of(series, scales);
  if (intervals.size() >= kBandFrom && has_line(series)) {
    canvas.plot(canvas.data(intervals),
                fmt::format("using 1:2:3 with filledcurves fc rgb '{}' fs transparent solid 0.18 "
                            "noborder",
                            look.colour));
  } else if (!intervals.empty()) {
    Rows whiskers;
    for (const auto& each : intervals) {
      Canvas::add_whisker(whiskers, scales.x, each[0], each[1], each[2], true);
    }
    canvas.plot(canvas.data(whiskers),
                fmt::format("using 1:2 with lines lc rgb '{}' lw 1.2", look.colour));
  }
  if (has_line(series) && rows.size() > 1) {
    canvas.plot(block, fmt::format("using 1:2 with {} lc rgb '{}' lw 2 dt {}",
                                   series.style == SeriesStyle::step ? "steps" : "lines",
                                   look.colour, dash_text(look.dash)));
  }
  if (look.marker > 0) {
    const double size = rows.size() > 300 ? 0.35 : rows.size() > 60 ? 0.55 : 0.9;
    canvas.plot(block, fmt::format("using 1:2 with points pt {} ps {:g} lc rgb '{}'", look.marker,
                                   size, look.colour));
  }
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
  const Rows rows = rows_of(series, scales);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].empty() || rows[i - 1].empty()) continue;
    const Segment line{scales.x.pixel(rows[i - 1][0]), scales.y.pixel(rows[i - 1][1]),
                       scales.x.pixel(rows[i][0]), scales.y.pixel(rows[i][1])};
    if (const auto inside = clipped(line, frame)) segments.push_back(*inside);
  }
  return segments;
}

void name_roof(Canvas& canvas, Places& places, const Look& look,
               const std::vector<Segment>& segments, const Box& frame) {
  const TextStyle style{.size = kSmall - 0.5, .colour = look.colour};
  const std::string name = shortened(look.series->name, 0.5 * (frame.right - frame.left), kSmall);
  for (const Segment& line : segments) {
    if (places.label_along(canvas, line.x1, line.y1, line.x2, line.y2, name, style)) return;
  }
  for (const Segment& line : segments) {
    for (const double share : {0.5, 0.25, 0.75, 0.1, 0.9}) {
      if (places.label(canvas, line.x1 + share * (line.x2 - line.x1),
                       line.y1 + share * (line.y2 - line.y1), 4.0, name, style)) {
        return;
      }
    }
  }
}

void draw_labels(Canvas& canvas, const std::vector<Look>& looks, const Scales& scales,
                 const Box& frame) {
  Places places(frame);
  for (const Look& look : looks) {
    const bool roof = is_roof(*look.series);
    if (roof || has_line(*look.series)) {
      for (const Segment& line : segments_of(*look.series, scales, frame)) {
        places.take_line(line.x1, line.y1, line.x2, line.y2, 1.5);
      }
    }
    if (look.marker == 0) continue;
    for (const Point& point : look.series->points) {
      if (!scales.x.takes(point.x) || !scales.y.takes(point.y)) continue;
      const double x = scales.x.pixel(point.x), y = scales.y.pixel(point.y);
      places.take({x - 4.0, y - 4.0, x + 4.0, y + 4.0});
    }
  }
  for (const Look& look : looks) {
    if (!is_roof(*look.series)) continue;
    name_roof(canvas, places, look, segments_of(*look.series, scales, frame), frame);
  }
  std::size_t drawn = 0;
  for (const Look& look : looks) {
    if (is_roof(*look.series)) continue;
    for (const Point& point : look.series->points) {
      if (point.label.empty() || drawn == kMostLabels) continue;
      if (!scales.x.takes(point.x) || !scales.y.takes(point.y)) continue;
      drawn += places.label(canvas, scales.x.pixel(point.x), scales.y.pixel(point.y), 5.0,
                            shortened(point.label, 320.0, kSmall - 1.0),
                            {.size = kSmall - 1.0, .colour = look.colour});
    }
  }
}

}  // namespace

Drawing draw_xy(const Figure& figure, const Colours& colours) {
  std::vector<std::string> notes;
  const auto shown = shown_series(figure, notes);
  Scales scales = scales_of(figure, shown);
  note_left_out(notes, scales.left_out);
  const std::vector<Look> looks = looks_of(shown, colours);
  auto [canvas, body] = sheet_of(figure, legend_of(looks), notes, kBodyHeight);

  const auto x_ticks = x_ticks_of(figure, scales.x), y_ticks = ticks_of(scales.y, 7);
  const Box frame =
      frame_of(canvas, body, title_of(figure.x), title_of(figure.y), widest(y_ticks), 20.0);
  canvas.axes(frame, scales.x, scales.y);
  canvas.ticks('x', x_ticks);
  canvas.ticks('y', y_ticks);
  for (const bool roofs : {true, false}) {
    for (const Look& look : looks) {
      if (is_roof(*look.series) == roofs) plot_series(canvas, look, scales);
    }
  }
  draw_labels(canvas, looks, scales, frame);
  return std::move(canvas).drawing();
}

}  // namespace ridgeline::report::plot
