// What a figure shows, in one sentence made from what is drawn. It tells values and judges nothing:
// makers whose figures compare runs write their own sentences, from verdicts.

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "report/analysis/prose.h"
#include "report/exhibits.h"

namespace ridgeline::report {
namespace {

// With more points than that a line is told by its middle, not by its end.
constexpr std::size_t kFew = 80;

std::string value_text(double value, const Axis& axis) {
  const bool count = std::floor(value) == value && std::abs(value) < 1e7;
  const std::string text = count ? plain_text(value) : number_text(value);
  return axis.unit.empty() ? text : axis.unit == "%" ? text + '%' : text + ' ' + axis.unit;
}

std::string place_text(const Figure& figure, const Point& point) {
  const std::vector<std::string>& names = figure.x.categories;
  if (!names.empty()) return names.at(static_cast<std::size_t>(point.x));
  const std::string value = value_text(point.x, figure.x);
  return figure.x.unit.empty() || figure.x.title == "batch"
             ? fmt::format("{} {}", figure.x.title, plain_text(point.x))
             : value;
}

// A part of a whole, and how much of it.
struct PartOfAll {
  std::string name;
  double value = 0.0;
};

std::string largest_part(const std::map<std::string, double>& values, const std::string& of) {
  double all = 0.0;
  for (const auto& [name, value] : values) all += value;
  if (all <= 0.0) return {};
  const auto most =
      std::ranges::max_element(values, {}, [](const auto& each) { return each.second; });
  return fmt::format("{} has the largest share of {}: {}.",
                     most->first.empty() ? "What has no name" : sentence_case(most->first), of,
                     percent_text(most->second / all));
}

// The ends of a list of values, each with what it is the value of.
std::string ends_text(const std::string& what, std::vector<PartOfAll> parts, const Axis& axis) {
  std::ranges::stable_sort(parts, {}, &PartOfAll::value);
  const PartOfAll &least = parts.front(), &most = parts.back();
  if (parts.size() == 1 || value_text(least.value, axis) == value_text(most.value, axis)) {
    return fmt::format("{} is {} ({}).", what, value_text(most.value, axis),
                       parts.size() == 1 ? most.name : "all");
  }
  return fmt::format("{} goes from {} ({}) to {} ({}).", what, value_text(least.value, axis),
                     least.name, value_text(most.value, axis), most.name);
}

std::string of_bars(const Figure& figure) {
  std::vector<PartOfAll> parts;
  std::map<std::string, double> sums;
  for (const Series& series : figure.series) {
    for (const Point& point : series.points) {
      const std::string place = place_text(figure, point);
      parts.push_back({figure.series.size() == 1 ? place : place + ", " + series.name, point.y});
      sums[series.name] += point.y;
    }
  }
  return figure.stacked ? largest_part(sums, "the whole")
                        : ends_text(sentence_case(figure.y.title), std::move(parts), figure.y);
}

double median_of(std::vector<Point> points) {
  std::ranges::sort(points, {}, &Point::y);
  return points[points.size() / 2].y;
}

std::string of_lines(const Figure& figure) {
  std::vector<PartOfAll> ends, middles;
  const Series* only = nullptr;
  for (const Series& series : figure.series) {
    if (series.style == SeriesStyle::roof || series.points.empty()) continue;
    only = &series;
    ends.push_back({series.name, series.points.back().y});
    middles.push_back({series.name, median_of(series.points)});
  }
  const std::string what = sentence_case(figure.y.title);
  const bool scattered = only->points.size() > kFew || only->style == SeriesStyle::points;
  if (scattered) return ends_text("The middle value of " + figure.y.title, middles, figure.y);
  if (ends.size() > 1) {
    const std::string& x = figure.x.title;
    const bool counted = x == "epoch" || x == "iteration";
    return ends_text(fmt::format("{} {}{}", what,
                                 counted                ? "after the last "
                                 : x == "training time" ? "at the end"
                                                        : "at the largest ",
                                 x == "training time" ? "" : x),
                     ends, figure.y);
  }
  const Point &first = only->points.front(), &last = only->points.back();
  return fmt::format("{} goes from {} ({}) to {} ({}).", what, value_text(first.y, figure.y),
                     place_text(figure, first), value_text(last.y, figure.y),
                     place_text(figure, last));
}

std::string of_areas(const Figure& figure) {
  std::map<double, std::map<std::string, double>> stacks;
  for (const Series& series : figure.series) {
    for (const Point& point : series.points) stacks[point.x][series.name] = point.y;
  }
  const auto total = [](const auto& stack) {
    double sum = 0.0;
    for (const auto& [name, value] : stack.second) sum += value;
    return sum;
  };
  const auto most = std::ranges::max_element(stacks, {}, total);
  return fmt::format("The most is {}, at {}. {}", value_text(total(*most), figure.y),
                     place_text(figure, {.x = most->first}), largest_part(most->second, "it"));
}

}  // namespace

std::string reading_of(const Figure& figure) {
  std::map<std::string, double> shares;
  double end = 0.0;
  if (figure.empty()) return {};
  switch (figure.kind) {
    case FigureKind::xy:
      return of_lines(figure);
    case FigureKind::bars:
      return of_bars(figure);
    case FigureKind::area:
      return of_areas(figure);
    case FigureKind::spans:
      for (const Span& span : figure.spans) end = std::max(end, span.end);
      // What lasts from the beginning to the end only holds the others.
      for (const Span& span : figure.spans) {
        if (span.end - span.begin < 0.8 * end) shares[span.group] += span.end - span.begin;
      }
      return largest_part(shares, "the time that is drawn");
    case FigureKind::diagram:
      break;
  }
  const Node& most = *std::ranges::max_element(figure.nodes, {}, &Node::weight);
  if (most.weight <= 0.0) return {};
  const bool named = most.title.starts_with(most.id);
  return fmt::format("{} has the largest share of the FLOPs: {}.",
                     named ? most.title : fmt::format("{} ({})", most.id, most.title),
                     percent_text(most.weight));
}

}  // namespace ridgeline::report
