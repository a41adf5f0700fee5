// Bars by category: side by side or stacked, upright or to the right.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "report/plot/draw.h"
#include "report/plot/sheet.h"
#include "report/plot/text_size.h"
#include "report/table.h"

namespace ridgeline::report::plot {
namespace {

constexpr double kUprightHeight = 400.0, kTilt = 35.0;
constexpr std::size_t kMostValues = 60;  // more numbers than that are noise

// One bar: along the categories from `begin` to `end`, each category being 1 wide.
struct Bar {
  std::size_t series = 0, category = 0;
  double begin = 0.0, end = 0.0;
  double foot = 0.0, head = 0.0;  // values
  double value = 0.0;
  std::optional<double> low, high;
};

struct Bars {
  std::vector<const Series*> series;
  std::vector<std::string> colours;
  std::size_t categories = 0;
  std::vector<Bar> bars;
  std::vector<Bar> missing;  // places of bars that were not measured
  std::size_t left_out = 0;
  // Where most series have no bar in most categories, only those that are there take up room.
  bool sparse = false;
  std::size_t side_by_side = 1;  // bars of a category, at most
};

const Point* point_of(const Series& series, std::size_t category) {
  for (const Point& point : series.points) {
    if (std::isfinite(point.y) && point.x == static_cast<double>(category)) return &point;
  }
  return nullptr;
}

// Where the bars of a category stand: with some air between categories.
constexpr double kAir = 0.12;

void count_bars(Bars& all, const Figure& figure) {
  std::size_t there = 0, most = 0;
  for (std::size_t category = 0; category < all.categories; ++category) {
    std::size_t here = 0;
    for (const Series* series : all.series) here += point_of(*series, category) != nullptr;
    there += here;
    most = std::max(most, here);
  }
  all.sparse = !figure.stacked && 2 * there <= all.categories * all.series.size();
  all.side_by_side = figure.stacked ? 1 : all.sparse ? most : all.series.size();
}

void add_category(Bars& all, const Figure& figure, std::size_t category) {
  const double count = static_cast<double>(std::max<std::size_t>(all.side_by_side, 1));
  const double thickness = (1.0 - 2.0 * kAir) / count;
  double place = static_cast<double>(category) + kAir;
  if (all.sparse) {
    double here = 0.0;
    for (const Series* series : all.series) here += point_of(*series, category) != nullptr;
    place += 0.5 * thickness * (count - here);
  }
  double up = 0.0, down = 0.0;  // how far a stack has grown
  for (std::size_t i = 0; i < all.series.size(); ++i) {
    const Point* point = point_of(*all.series[i], category);
    if (point == nullptr && all.sparse) continue;
    Bar bar;
    bar.series = i;
    bar.category = category;
    bar.begin = place;
    bar.end = bar.begin + thickness * (count > 1.0 ? 0.94 : 1.0);
    if (!figure.stacked) place += thickness;
    if (point == nullptr) {
      all.missing.push_back(bar);
      continue;
    }
    if (figure.y.logarithmic && point->y <= 0.0) {
      ++all.left_out;
      continue;
    }
    bar.value = bar.head = point->y;
    bar.low = point->low;
    bar.high = point->high;
    if (figure.stacked) {
      double& grown = point->y < 0.0 ? down : up;
      bar.foot = grown;
      grown += point->y;
      bar.head = grown;
    }
    all.bars.push_back(bar);
  }
}

Bars bars_of(const Figure& figure, std::vector<const Series*> shown, const Colours& colours) {
  Bars all;
  all.colours = colours.of(shown);
  all.series = std::move(shown);
  all.categories = figure.x.categories.size();
  count_bars(all, figure);
  for (std::size_t i = 0; i < all.categories; ++i) add_category(all, figure, i);
  return all;
}

Scale values_of(const Figure& figure, const Bars& all) {
  Range range;
  for (const Bar& bar : all.bars) {
    range.add(bar.head);
    for (const auto& end : {bar.low, bar.high}) {
      if (end && (!figure.y.logarithmic || *end > 0.0)) range.add(*end);
    }
  }
  return scale_of(figure.y, range, true);
}

void plot_bars(Canvas& canvas, const Figure& figure, const Bars& all, const Scale& categories,
               const Scale& values) {
  const auto within = [&](double value) {
    return values.logarithmic ? std::max(value, values.low) : value;
  };
  for (std::size_t i = 0; i < all.series.size(); ++i) {
    std::vector<std::vector<double>> boxes, whiskers;
    for (const Bar& bar : all.bars) {
      if (bar.series != i) continue;
      const double middle = (bar.begin + bar.end) / 2.0;
      const double foot = within(bar.foot), head = within(bar.head);
      boxes.push_back(figure.horizontal
                          ? std::vector<double>{head, middle, foot, head, bar.begin, bar.end}
                          : std::vector<double>{middle, head, bar.begin, bar.end, foot, head});
      if (figure.stacked || !bar.low || !bar.high) continue;
      const double low = within(*bar.low), high = within(*bar.high);
      Canvas::add_whisker(whiskers, categories, middle, low, high, !figure.horizontal);
    }
    if (boxes.empty()) continue;
    canvas.plot(canvas.data(boxes),
                fmt::format("using 1:2:3:4:5:6 with boxxyerror fc rgb '{}' fs solid 1 "
                            "border lc rgb '#ffffff'",
                            all.colours[i]));
    if (whiskers.empty()) continue;
    canvas.plot(canvas.data(whiskers),
                fmt::format("using 1:2 with lines lc rgb '{}' lw 1.2", kInk));
  }
}

// "71" where a table would have "71.0": what follows is the picture's own precision.
std::string short_number(double value) {
  std::string text = number_text(value);
  if (text.find('.') == std::string::npos || text.find('e') != std::string::npos) return text;
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.pop_back();
  return text;
}

// "8.41M": for bars that are narrower than their numbers.
std::string rounded_text(double value) {
  const double size = std::abs(value);
  if (size >= 1e9) return short_number(value / 1e9) + 'G';
  if (size >= 1e6) return short_number(value / 1e6) + 'M';
  return size >= 1e3 ? short_number(value / 1e3) + 'k' : short_number(value);
}

// Numbers at the ends of bars, or inside the parts of stacks that have room.
void write_values(Canvas& canvas, const Figure& figure, const Bars& all, const Scale& categories,
                  const Scale& values) {
  if (all.bars.size() > kMostValues) return;
  const double size = kSmall - 1.0;
  for (const Bar& bar : all.bars) {
    std::string text = short_number(bar.value);
    const double along = categories.pixel((bar.begin + bar.end) / 2.0);
    const double room = std::abs(categories.pixel(bar.end) - categories.pixel(bar.begin));
    if (!figure.horizontal && text_width(text, size) > room + 8.0) text = rounded_text(bar.value);
    const double width = text_width(text, size);
    if (figure.stacked) {
      const double from = values.pixel(bar.foot), to = values.pixel(bar.head);
      const bool fits = figure.horizontal ? std::abs(to - from) > width + 6.0 && room > size
                                          : std::abs(to - from) > size + 4.0 && room > width + 4.0;
      if (!fits || bar.value == 0.0) continue;
      const TextStyle style{.size = size,
                            .colour = is_light(all.colours[bar.series]) ? kInk : "#ffffff",
                            .align = 'c'};
      const double middle = (from + to) / 2.0;
      canvas.text(figure.horizontal ? middle : along, figure.horizontal ? along : middle, text,
                  style);
      continue;
    }
    const bool negative = bar.value < 0.0;
    double end = bar.value;
    if (!negative && bar.high) end = std::max(end, *bar.high);
    if (negative && bar.low) end = std::min(end, *bar.low);
    if (figure.horizontal && room > 0.8 * size) {
      canvas.text(values.pixel(end) + (negative ? -5.0 : 5.0), along, text,
                  {.size = size, .align = negative ? 'r' : 'l'});
    } else if (!figure.horizontal && room > width - 8.0) {
      canvas.text(along, values.pixel(end) + (negative ? 9.0 : -9.0), text,
                  {.size = size, .align = 'c'});
    }
  }
}

void mark_missing(Canvas& canvas, const Figure& figure, const Bars& all, const Scale& categories,
                  const Scale& values) {
  if (figure.stacked) return;
  const double foot = values.pixel(values.logarithmic ? values.low : std::max(0.0, values.low));
  for (const Bar& place : all.missing) {
    const double along = categories.pixel((place.begin + place.end) / 2.0);
    const double room = std::abs(categories.pixel(place.end) - categories.pixel(place.begin));
    if (room < (figure.horizontal ? 9.0 : 22.0)) continue;
    canvas.text(figure.horizontal ? foot + 5.0 : along, figure.horizontal ? along : foot - 9.0,
                "n/a",
                {.size = kSmall - 1.5, .colour = kSoftInk, .align = figure.horizontal ? 'l' : 'c'});
  }
}

std::vector<Entry> legend_of(const Bars& all) {
  std::vector<Entry> legend;
  for (std::size_t i = 0; i < all.series.size(); ++i) {
    if (all.series.size() == 1 && all.series[i]->name.empty()) continue;
    legend.push_back({all.series[i]->name, all.colours[i], false, 0, 1});
  }
  return legend;
}

Drawing draw_horizontal(const Figure& figure, const Bars& all, Scale values,
                        const std::vector<std::string>& notes) {
  const double rows = static_cast<double>(all.categories);
  const double bars = static_cast<double>(all.side_by_side);
  const double height = std::clamp(rows * (bars * (bars > 1 ? 17.0 : 22.0) + 12.0), 90.0, 1500.0);
  auto [canvas, body] = sheet_of(figure, legend_of(all), notes, height + 60.0);
  double left = 0.0;
  // Ends of names often tell them apart: two lines rather than half a name.
  std::vector<std::vector<std::string>> names;
  for (const std::string& name : figure.x.categories) {
    names.push_back(wrapped(name, 310.0, kSmall, 2));
    for (const std::string& line : names.back()) left = std::max(left, text_width(line, kSmall));
  }
  const Box frame = frame_of(canvas, body, title_of(figure.y), "", left, 20.0);
  Scale categories{rows, 0.0};  // the first one at the top
  if (all.categories == 0) categories = {1.0, 0.0};
  canvas.axes(frame, values, categories);
  canvas.ticks('x', ticks_of(values, 8));
  plot_bars(canvas, figure, all, categories, values);
  for (std::size_t i = 0; i < names.size(); ++i) {
    double y = categories.pixel(static_cast<double>(i) + 0.5) -
               7.0 * (static_cast<double>(names[i].size()) - 1.0);
    for (const std::string& line : names[i]) {
      canvas.text(frame.left - 8.0, y, line, {.size = kSmall, .align = 'r'});
      y += 14.0;
    }
  }
  write_values(canvas, figure, all, categories, values);
  mark_missing(canvas, figure, all, categories, values);
  return std::move(canvas).drawing();
}

// The names under the bars: in lines where they fit, else tilted.
struct Names {
  bool tilted = false;
  std::vector<std::vector<std::string>> lines;
  double height = 0.0;
};

Names names_of(const std::vector<std::string>& categories, double slot) {
  Names names;
  for (const std::string& category : categories) {
    auto lines = wrapped(category, slot - 8.0, kSmall, 4);
    for (std::size_t at = 0; at < category.size();) {  // no word may be broken
      const std::size_t end = std::min(category.find(' ', at), category.size());
      names.tilted |= text_width(category.substr(at, end - at), kSmall) > slot - 8.0;
      at = end + 1;
    }
    names.tilted |= lines.size() > 3;
    names.height = std::max(names.height, 15.0 * static_cast<double>(lines.size()));
    names.lines.push_back(std::move(lines));
  }
  if (!names.tilted) return names;
  names.height = 0.0;
  const double radians = kTilt * std::numbers::pi / 180.0;
  for (std::size_t i = 0; i < categories.size(); ++i) {
    // The first ones reach to the left of the axis.
    const double room =
        std::min(250.0, (70.0 + slot * (static_cast<double>(i) + 0.5)) / std::cos(radians));
    names.lines[i] = {shortened(categories[i], room, kSmall)};
    const double width = text_width(names.lines[i][0], kSmall);
    names.height = std::max(names.height, width * std::sin(radians) + 14.0);
  }
  return names;
}

Drawing draw_upright(const Figure& figure, const Bars& all, Scale values,
                     const std::vector<std::string>& notes) {
  const double count = static_cast<double>(std::max<std::size_t>(all.categories, 1));
  const Names names = names_of(figure.x.categories, 840.0 / count);
  auto [canvas, body] = sheet_of(figure, legend_of(all), notes, kUprightHeight + names.height);
  const auto ticks = ticks_of(values, 7);
  const Box frame = frame_of(canvas, body, title_of(figure.x), title_of(figure.y), widest(ticks),
                             names.height + 6.0);
  Scale categories{0.0, count};
  canvas.axes(frame, categories, values);
  canvas.ticks('y', ticks);
  plot_bars(canvas, figure, all, categories, values);
  for (std::size_t i = 0; i < all.categories; ++i) {
    const double x = categories.pixel(static_cast<double>(i) + 0.5);
    for (std::size_t line = 0; line < names.lines[i].size(); ++line) {
      const double y = frame.bottom + 12.0 + 15.0 * static_cast<double>(line);
      canvas.text(names.tilted ? x + 6.0 : x, y, names.lines[i][line],
                  {.size = kSmall,
                   .align = names.tilted ? 'r' : 'c',
                   .rotate = names.tilted ? kTilt : 0.0});
    }
  }
  write_values(canvas, figure, all, categories, values);
  mark_missing(canvas, figure, all, categories, values);
  return std::move(canvas).drawing();
}

}  // namespace

Drawing draw_bars(const Figure& figure, const Colours& colours) {
  std::vector<std::string> notes;
  const Bars all = bars_of(figure, shown_series(figure, notes), colours);
  note_left_out(notes, all.left_out);
  const Scale values = values_of(figure, all);
  return figure.horizontal ? draw_horizontal(figure, all, values, notes)
                           : draw_upright(figure, all, values, notes);
}

}  // namespace ridgeline::report::plot
