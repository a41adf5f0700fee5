// Bars by category: side by side or stacked, upright or to the right. A logarithmic axis has no
// zero for bars to begin at: dots stand there instead.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "report/plot/frame.h"
#include "report/plot/text_size.h"
#include "report/table.h"

namespace ridgeline::report::plot {
namespace {

constexpr double kUprightHeight = 360.0, kTilt = 35.0;
constexpr double kRoom = kWidth - 100.0;             // of all categories, about
constexpr double kThinnest = 7.0, kThickest = 64.0;  // upright bars
constexpr double kDot = 4.5;
constexpr std::size_t kMostValues = 60;  // more numbers than that are noise

// One bar: along the categories from `begin` to `end`, each category being 1 wide.
struct Bar {
  std::size_t series = 0, category = 0;
  double begin = 0.0, end = 0.0;
  double foot = 0.0, head = 0.0;  // values
  double value = 0.0;
  std::optional<double> low = {}, high = {};
};

struct Bars {
  const Figure& figure;
  std::vector<Paint> paints = {};        // of all series
  std::vector<std::size_t> series = {};  // those that have points
  std::size_t categories = 0;
  std::vector<Bar> bars = {};
  std::vector<Bar> missing = {};  // places of bars that were not measured
  std::size_t left_out = 0;
  // Where most series have no bar in most categories, only those that are there take up room.
  bool sparse = false;
  bool horizontal = false;
  std::size_t side_by_side = 1;  // bars of a category, at most
  double air = 0.12;             // before and behind the bars of a category

  [[nodiscard]] bool dots() const { return figure.y.logarithmic && !figure.stacked; }
  [[nodiscard]] const Point* point(std::size_t index, std::size_t category) const {
    for (const Point& each : figure.series[index].points) {
      if (std::isfinite(each.y) && each.x == static_cast<double>(category)) return &each;
    }
    return nullptr;
  }
  [[nodiscard]] std::size_t count(std::size_t category) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        series, [&](std::size_t index) { return point(index, category) != nullptr; }));
  }
};

void place_bars(Bars& all) {
  std::size_t there = 0, most = 1;
  for (std::size_t category = 0; category < all.categories; ++category) {
    there += all.count(category);
    most = std::max(most, all.count(category));
  }
  const bool stacked = all.figure.stacked;
  all.sparse = !stacked && 2 * there <= all.categories * all.series.size();
  all.side_by_side = stacked ? 1 : all.sparse ? most : std::max<std::size_t>(all.series.size(), 1);
  const double slot = kRoom / static_cast<double>(std::max<std::size_t>(all.categories, 1));
  const double bars = static_cast<double>(all.side_by_side);
  // Upright bars need room for themselves; few of them would become slabs.
  all.horizontal = all.figure.horizontal || (1.0 - 2.0 * all.air) * slot / bars < kThinnest;
  if (!all.horizontal) all.air = std::max(all.air, 0.5 * (1.0 - kThickest * bars / slot));
}

void add_category(Bars& all, std::size_t category) {
  const bool stacked = all.figure.stacked;
  const double count = static_cast<double>(all.side_by_side);
  const double thickness = (1.0 - 2.0 * all.air) / count;
  double place = static_cast<double>(category) + all.air;
  if (all.sparse) {
    place += 0.5 * thickness * (count - static_cast<double>(all.count(category)));
  }
  double up = 0.0, down = 0.0;  // how far a stack has grown
  for (const std::size_t index : all.series) {
    const Point* point = all.point(index, category);
    if (point == nullptr && all.sparse) continue;
    Bar bar{.series = index, .category = category, .begin = place};
    bar.end = bar.begin + thickness * (count > 1.0 ? 0.94 : 1.0);
    if (!stacked) place += thickness;
    if (point == nullptr) {
      all.missing.push_back(bar);
      continue;
    }
    if (all.figure.y.logarithmic && point->y <= 0.0) {
      ++all.left_out;
      continue;
    }
    bar.value = bar.head = point->y;
    bar.low = point->low;
    bar.high = point->high;
    if (stacked) {
      double& grown = point->y < 0.0 ? down : up;
      bar.foot = grown;
      grown += point->y;
      bar.head = grown;
    }
    all.bars.push_back(bar);
  }
}

Bars bars_of(const Figure& figure, const Colours& colours) {
  Bars all{.figure = figure, .paints = colours.of(figure.series)};
  all.categories = figure.x.categories.size();
  for (std::size_t i = 0; i < figure.series.size(); ++i) {
    if (!figure.series[i].points.empty()) all.series.push_back(i);
  }
  place_bars(all);
  for (std::size_t i = 0; i < all.categories; ++i) add_category(all, i);
  return all;
}

Scale values_of(const Bars& all) {
  Range range;
  for (const Bar& bar : all.bars) {
    range.add(bar.head);
    if (all.figure.stacked) continue;
    for (const auto& end : {bar.low, bar.high}) {
      if (end && (!all.figure.y.logarithmic || *end > 0.0)) range.add(*end);
    }
  }
  Scale scale = scale_of(all.figure.y, range, !all.dots());
  // Numbers stand behind bars that lie.
  if (all.horizontal && !all.figure.y.high && !all.figure.stacked) {
    const double share = 0.08;
    scale.high = scale.logarithmic ? scale.high * std::pow(scale.high / scale.low, share)
                                   : scale.high + share * (scale.high - scale.low);
  }
  return scale;
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

// Draws bars within the frame of both scales.
class BarPainter {
 public:
  BarPainter(Svg& svg, const Bars& all, const Scale& categories, const Scale& values)
      : svg_(svg), all_(all), categories_(categories), values_(values) {}

  void draw() {
    for (const std::size_t index : all_.series) {
      const auto count =
          std::ranges::count_if(all_.bars, [&](const Bar& bar) { return bar.series == index; });
      svg_.open(series_group(all_.figure, index, static_cast<std::size_t>(count)));
      for (const Bar& bar : all_.bars) {
        if (bar.series == index) draw(bar);
      }
      if (!all_.figure.stacked) {
        for (const Bar& bar : all_.missing) {
          if (bar.series == index) mark_missing(bar);
        }
      }
      svg_.close();
    }
  }

 private:
  [[nodiscard]] double along(double value) const {
    return values_.pixel(std::clamp(value, values_.low, values_.high));
  }
  [[nodiscard]] double across(const Bar& bar) const {
    return categories_.pixel((bar.begin + bar.end) / 2.0);
  }
  [[nodiscard]] double thickness(const Bar& bar) const {
    return std::abs(categories_.pixel(bar.end) - categories_.pixel(bar.begin));
  }

  void draw(const Bar& bar) {
    const double from = std::min(along(bar.foot), along(bar.head));
    const double to = std::max({along(bar.foot), along(bar.head), from + 0.8});
    const double begin = across(bar) - 0.5 * thickness(bar), end = begin + thickness(bar);
    const Paint& paint = all_.paints[bar.series];
    std::string look = fmt::format(R"(class="bar" data-category="{}" {})", bar.category,
                                   filled(paint.colour, paint.shade));
    if (all_.figure.stacked) look += fmt::format(R"( stroke="{}" stroke-width="0.5")", kPaper);
    if (all_.dots()) {
      draw_dot(bar, look);
    } else {
      svg_.box(all_.horizontal ? Box{from, begin, to, end} : Box{begin, from, end, to}, look);
    }
    if (!all_.figure.stacked && bar.low && bar.high) {
      const double low = along(*bar.low), high = along(*bar.high);
      if (std::abs(low - high) >= 2.0) {
        svg_.path(whisker(across(bar), low, high, !all_.horizontal), stroked(kInk, 1.2, 0.75));
      }
    }
    if (all_.bars.size() <= kMostValues) write_value(bar);
  }

  // On a line that leads to its name.
  void draw_dot(const Bar& bar, const std::string& look) {
    const double x = all_.horizontal ? along(bar.head) : across(bar),
                 y = all_.horizontal ? across(bar) : along(bar.head);
    const double foot = along(values_.low);
    svg_.line(all_.horizontal ? foot : x, all_.horizontal ? y : foot, x, y,
              stroked(kSoft, 0.6, 0.4));
    svg_.box({x - kDot, y - kDot, x + kDot, y + kDot}, fmt::format(R"({} rx="{}")", look, kDot));
  }

  // At the end of the bar, or inside a part of a stack that has room.
  void write_value(const Bar& bar) {
    const double size = kSmall - 1.0, room = thickness(bar);
    std::string text = short_number(bar.value);
    const bool narrow = !all_.horizontal && text_width(text, size) > room + 2.0;
    if (narrow || std::abs(bar.value) >= 1e6) text = rounded_text(bar.value);
    const double width = text_width(text, size);
    if (all_.figure.stacked) {
      const double from = along(bar.foot), to = along(bar.head), length = std::abs(to - from);
      const bool fits = all_.horizontal ? length > width + 6.0 && room > size
                                        : length > size + 4.0 && room > width + 4.0;
      const TextStyle style{.size = size, .colour = all_.paints[bar.series].on, .align = 'c'};
      if (fits && bar.value != 0.0) put(0.5 * (from + to), across(bar), text, style);
      return;
    }
    const bool negative = bar.value < 0.0;
    double end = bar.value;
    if (!negative && bar.high) end = std::max(end, *bar.high);
    if (negative && bar.low) end = std::min(end, *bar.low);
    if (all_.horizontal && room > 0.8 * size) {
      put(along(end) + (negative      ? -5.0
                        : all_.dots() ? 9.0
                                      : 5.0),
          across(bar), text, {.size = size, .align = negative ? 'r' : 'l'});
    } else if (!all_.horizontal && room > width - 2.0) {
      put(along(end) + (negative      ? 9.0
                        : all_.dots() ? -13.0
                                      : -9.0),
          across(bar), text, {.size = size, .align = 'c'});
    }
  }

  void mark_missing(const Bar& bar) {
    if (thickness(bar) < (all_.horizontal ? 9.0 : 22.0)) return;
    const double foot = along(values_.logarithmic ? values_.low : 0.0);
    put(foot + (all_.horizontal ? 5.0 : -9.0), across(bar), "n/a",
        {.size = kSmall - 1.5, .colour = kSoft, .align = all_.horizontal ? 'l' : 'c'});
  }

  void put(double value, double category, const std::string& text, const TextStyle& style) {
    svg_.text(all_.horizontal ? value : category, all_.horizontal ? category : value, text, style);
  }

  Svg& svg_;
  const Bars& all_;
  const Scale &categories_, &values_;
};

std::vector<Entry> legend_of(const Bars& all) {
  std::vector<Entry> legend;
  for (std::size_t i = 0; i < all.paints.size(); ++i) {
    const Series& series = all.figure.series[i];
    legend.push_back({.name = series.name,
                      .paint = all.paints[i],
                      .in_files = !series.hidden && !series.points.empty()});
  }
  return legend;
}

void draw_horizontal(Svg& svg, const Bars& all, Drawing& drawing) {
  const double rows = static_cast<double>(std::max<std::size_t>(all.categories, 1));
  const double bars = static_cast<double>(all.side_by_side);
  const double height = std::clamp(rows * (bars * (bars > 1 ? 17.0 : 22.0) + 12.0), 90.0, 1500.0);
  drawing.height = height + 60.0;
  double left = 0.0;
  // Ends of names often tell them apart: two lines rather than half a name.
  std::vector<std::vector<std::string>> names;
  for (const std::string& name : all.figure.x.categories) {
    names.push_back(wrapped(name, 0.36 * kWidth, kSmall, 2));
    for (const std::string& line : names.back()) left = std::max(left, text_width(line, kSmall));
  }
  Scale values = values_of(all), categories{rows, 0.0};  // the first one at the top
  const Box frame = draw_frame(svg,
                               {.height = drawing.height,
                                .x = {title_of(all.figure.y), ticks_of(values, 8)},
                                .y = {},
                                .left = left},
                               values, categories);
  for (std::size_t i = 0; i < names.size(); ++i) {
    double y = categories.pixel(static_cast<double>(i) + 0.5) -
               7.0 * (static_cast<double>(names[i].size()) - 1.0);
    for (const std::string& line : names[i]) {
      svg.text(frame.left - 8.0, y, line, {.size = kSmall, .align = 'r'});
      y += 14.0;
    }
  }
  BarPainter(svg, all, categories, values).draw();
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

void draw_upright(Svg& svg, const Bars& all, Drawing& drawing) {
  const double count = static_cast<double>(std::max<std::size_t>(all.categories, 1));
  const Names names = names_of(all.figure.x.categories, kRoom / count);
  drawing.height = kUprightHeight + names.height;
  Scale values = values_of(all), categories{0.0, count};
  const Box frame = draw_frame(svg,
                               {.height = drawing.height,
                                .x = {title_of(all.figure.x)},
                                .y = {title_of(all.figure.y), ticks_of(values, 7)},
                                .bottom = names.height + 6.0},
                               categories, values);
  for (std::size_t i = 0; i < all.categories; ++i) {
    const double x = categories.pixel(static_cast<double>(i) + 0.5);
    for (std::size_t line = 0; line < names.lines[i].size(); ++line) {
      const double y = frame.bottom + 12.0 + 15.0 * static_cast<double>(line);
      svg.text(names.tilted ? x + 6.0 : x, y, names.lines[i][line],
               {.size = kSmall,
                .align = names.tilted ? 'r' : 'c',
                .rotate = names.tilted ? kTilt : 0.0});
    }
  }
  BarPainter(svg, all, categories, values).draw();
}

}  // namespace

Drawing draw_bars(const Figure& figure, const Colours& colours) {
  const Bars all = bars_of(figure, colours);
  Drawing drawing{.legend = legend_of(all)};
  note_left_out(drawing.notes, all.left_out);
  Svg svg;
  if (all.horizontal) {
    draw_horizontal(svg, all, drawing);
  } else {
    draw_upright(svg, all, drawing);
  }
  drawing.elements = std::move(svg).text();
  return drawing;
}

}  // namespace ridgeline::report::plot
