// A network as boxes and arrows, from top to bottom in columns like those of a newspaper. Arrows
// that skip boxes run beside the columns.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "report/plot/draw.h"
#include "report/plot/network.h"
#include "report/plot/text_size.h"

namespace ridgeline::report::plot {
namespace {

constexpr double kBoxHeight = 36.0, kPitch = 52.0, kLaneGap = 14.0, kTrack = 9.0;
constexpr double kTitleSize = 12.0, kDetailSize = 10.0;
constexpr double kLeastShape = 0.5;  // width over height of large networks

struct Layout {
  std::size_t rows = 1;                     // of each column
  std::vector<std::size_t> depth, lane;     // of each node
  std::vector<std::size_t> lanes_of_depth;  // how many nodes stand side by side
  std::vector<std::size_t> lanes_of_column;
  double box = 120.0;  // width
  [[nodiscard]] std::size_t column(std::size_t node) const { return depth[node] / rows; }
  [[nodiscard]] std::size_t row(std::size_t node) const { return depth[node] % rows; }
  [[nodiscard]] bool last_lane(std::size_t node) const {
    return lane[node] + 1 == lanes_of_depth[depth[node]];
  }
};

double column_width(const Layout& layout, std::size_t column) {
  const double lanes = static_cast<double>(layout.lanes_of_column[column]);
  return lanes * layout.box + (lanes - 1.0) * kLaneGap;
}

void cut_into_columns(Layout& layout, std::size_t rows) {
  layout.rows = rows;
  const std::size_t columns = (layout.lanes_of_depth.size() + rows - 1) / rows;
  layout.lanes_of_column.assign(columns, 1);
  for (std::size_t depth = 0; depth < layout.lanes_of_depth.size(); ++depth) {
    std::size_t& lanes = layout.lanes_of_column[depth / rows];
    lanes = std::max(lanes, layout.lanes_of_depth[depth]);
  }
}

Layout layout_of(const Network& network) {
  Layout layout;
  layout.depth = depths_of(network);
  std::size_t deepest = 0;
  for (std::size_t i = 0; i < network.nodes.size(); ++i) {
    deepest = std::max(deepest, layout.depth[i]);
    const Node& node = network.nodes[i];
    layout.box = std::max({layout.box, text_width(node.title, kTitleSize) + 14.0,
                           text_width(node.detail, kDetailSize) + 14.0});
  }
  layout.box = std::min(layout.box, 216.0);
  layout.lanes_of_depth.assign(deepest + 1, 0);
  for (const std::size_t depth : layout.depth) {
    layout.lane.push_back(layout.lanes_of_depth[depth]++);
  }
  // As many columns as the page is wide, and more where they would become too long.
  std::size_t chosen = deepest + 1;
  for (std::size_t columns = 2; columns <= deepest + 1; ++columns) {
    const std::size_t rows = (deepest + columns) / columns;
    cut_into_columns(layout, rows);
    double width = 0.0;
    for (std::size_t i = 0; i < layout.lanes_of_column.size(); ++i) {
      width += column_width(layout, i) + 40.0;
    }
    const double height = kPitch * static_cast<double>(chosen);
    if (width > kWidth && kWidth > kLeastShape * height) break;
    chosen = rows;
    if (width > kWidth && width > kLeastShape * kPitch * static_cast<double>(rows)) break;
  }
  cut_into_columns(layout, chosen);
  return layout;
}

// An arrow's way: first out of its box, then along the gutter right of a column, then into the
// other box. Neighbours in a column need no gutter.
struct Way {
  std::size_t from = 0, to = 0;
  bool straight = false;
  std::size_t gutter = 0, track = 0;            // where it leaves the first column
  std::size_t last_gutter = 0, last_track = 0;  // where it reaches the second: may be the same
  double out = 0.0, in = 0.0;                   // heights of its level parts
  bool from_side = false, to_side = false;
};

double row_top(std::size_t row) { return kPitch * static_cast<double>(row) + 10.0; }

// Tracks of a gutter: which heights are taken.
class Gutter {
 public:
  std::size_t take(double a, double b) {
    const auto [low, high] = std::minmax(a, b);
    for (std::size_t i = 0;; ++i) {
      if (i == tracks_.size()) tracks_.emplace_back();
      const bool free = std::ranges::none_of(tracks_[i], [&](const auto& part) {
        return low < part.second + 4.0 && part.first < high + 4.0;
      });
      if (!free) continue;
      tracks_[i].emplace_back(low, high);
      return i;
    }
  }
  [[nodiscard]] double width() const { return 22.0 + kTrack * static_cast<double>(tracks_.size()); }

 private:
  std::vector<std::vector<std::pair<double, double>>> tracks_;
};

std::vector<Way> ways_of(const Network& network, const Layout& layout,
                         std::vector<Gutter>& gutters) {
  std::vector<Way> ways;
  for (const auto& [from, to] : network.edges) {
    Way way;
    way.from = from;
    way.to = to;
    const std::size_t first = layout.column(from), second = layout.column(to);
    const bool next = layout.depth[to] == layout.depth[from] + 1;
    way.straight = next && first == second;
    if (!way.straight) {
      const double below = row_top(layout.row(from)) + kBoxHeight + 6.0;
      const double above = row_top(layout.row(to)) - 7.0;
      way.from_side = layout.last_lane(from) && !next;
      way.to_side = first == second ? layout.last_lane(to) : layout.lane[to] == 0 && !next;
      way.out = way.from_side ? row_top(layout.row(from)) + 0.5 * kBoxHeight : below;
      way.in = way.to_side ? row_top(layout.row(to)) + 0.35 * kBoxHeight : above;
      way.gutter = first;
      way.last_gutter = second > first + 1 ? second - 1 : first;
      if (way.last_gutter == way.gutter) {
        way.track = way.last_track = gutters[first].take(way.out, way.in);
      } else {
        way.track = gutters[first].take(way.out, 0.0);
        way.last_track = gutters[way.last_gutter].take(0.0, way.in);
      }
    }
    ways.push_back(way);
  }
  return ways;
}

class DiagramPainter {
 public:
  DiagramPainter(Svg& svg, const Layout& layout, const std::vector<Gutter>& gutters, double left)
      : svg_(svg), layout_(layout) {
    for (std::size_t i = 0; i < layout.lanes_of_column.size(); ++i) {
      columns_.push_back(left);
      left += column_width(layout, i);
      gutters_.push_back(left);
      left += gutters[i].width();
    }
  }

  // `share`: of the heaviest box.
  void box(std::size_t index, const Node& node, const std::string& colour, double share) {
    const double left = left_of(index), y = row_top(layout_.row(index));
    const double right = left + layout_.box, bottom = y + kBoxHeight;
    svg_.box({left, y, right, bottom},
             fmt::format(R"(rx="3" stroke="{}" {})", colour, filled(kPaper)));
    svg_.box({left, y, right, bottom}, R"(rx="3" )" + filled(colour, 0.12));
    if (share > 0.0) {
      svg_.box({left + 1.0, bottom - 5.0, left + 1.0 + share * (layout_.box - 2.0), bottom - 1.0},
               filled(colour));
    }
    const double middle = left + 0.5 * layout_.box, room = layout_.box - 8.0;
    svg_.text(middle, y + (node.detail.empty() ? 0.45 * kBoxHeight : 11.0),
              shortened(node.title, room, kTitleSize), {.size = kTitleSize, .align = 'c'});
    svg_.text(middle, y + 24.0, shortened(node.detail, room, kDetailSize),
              {.size = kDetailSize, .colour = kSoft, .align = 'c'});
  }

  void arrow(const Way& way) {
    const Points points = points_of(way);
    std::string d;
    for (const auto& [x, y] : points) {
      d += fmt::format("{}{} {}", d.empty() ? 'M' : 'L', px(x), px(y));
    }
    // Its head: into the top of a box, or into its side.
    const auto [x, y] = points.back();
    if (!way.to_side) {
      d += fmt::format("M{} {}l3 6l3-6", px(x - 3.0), px(y - 6.0));
    } else {
      const double away = same_column(way) ? 6.0 : -6.0;
      d += fmt::format("M{} {}l{} 3l{} 3", px(x + away), px(y - 3.0), px(-away), px(away));
    }
    svg_.path(d, fmt::format(R"(class="edge" data-from="{}" data-to="{}" {})", way.from, way.to,
                             stroked(kSoft, 1.2)));
  }

 private:
  using Points = std::vector<std::pair<double, double>>;

  [[nodiscard]] bool same_column(const Way& way) const {
    return layout_.column(way.from) == layout_.column(way.to);
  }

  [[nodiscard]] Points points_of(const Way& way) const {
    const double from_x = left_of(way.from) + 0.5 * layout_.box;
    const double to_x = left_of(way.to) + 0.5 * layout_.box;
    const double from_y = row_top(layout_.row(way.from)) + kBoxHeight;
    const double to_y = row_top(layout_.row(way.to));
    if (way.straight) {
      const double between = 0.5 * (from_y + to_y);
      return {{from_x, from_y}, {from_x, between}, {to_x, between}, {to_x, to_y}};
    }
    Points points;
    const double first = gutters_[way.gutter] + 11.0 + kTrack * static_cast<double>(way.track);
    const double last =
        gutters_[way.last_gutter] + 11.0 + kTrack * static_cast<double>(way.last_track);
    if (!way.from_side) points.emplace_back(from_x, from_y);
    points.emplace_back(way.from_side ? left_of(way.from) + layout_.box : from_x, way.out);
    points.emplace_back(first, way.out);
    if (first != last) {
      points.emplace_back(first, 2.0);
      points.emplace_back(last, 2.0);
    }
    points.emplace_back(last, way.in);
    if (way.to_side) {
      points.emplace_back(left_of(way.to) + (same_column(way) ? layout_.box : 0.0), way.in);
    } else {
      points.emplace_back(to_x, way.in);
      points.emplace_back(to_x, to_y);
    }
    return points;
  }

  [[nodiscard]] double left_of(std::size_t node) const {
    const std::size_t column = layout_.column(node);
    // Rows with fewer boxes than their column stand in its middle.
    const double lanes = static_cast<double>(layout_.lanes_of_depth[layout_.depth[node]]);
    const double width = lanes * layout_.box + (lanes - 1.0) * kLaneGap;
    const double left = columns_[column] + 0.5 * (column_width(layout_, column) - width);
    return left + static_cast<double>(layout_.lane[node]) * (layout_.box + kLaneGap);
  }

  Svg& svg_;
  const Layout& layout_;
  std::vector<double> columns_, gutters_;  // their left sides
};

}  // namespace

Network network_of(const Figure& figure) {
  Network network{figure.nodes, {}};
  std::map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < figure.nodes.size(); ++i) index.emplace(figure.nodes[i].id, i);
  std::set<std::pair<std::size_t, std::size_t>> known;
  for (const Edge& edge : figure.edges) {
    const auto from = index.find(edge.from), to = index.find(edge.to);
    if (from == index.end() || to == index.end() || from == to) continue;
    if (known.emplace(from->second, to->second).second) {
      network.edges.emplace_back(from->second, to->second);
    }
  }
  return network;
}

std::vector<std::size_t> depths_of(const Network& network) {
  const std::size_t count = network.nodes.size();
  std::vector<std::vector<std::size_t>> next(count);
  std::vector<std::size_t> waits(count, 0), depths(count, 0);
  for (const auto& [from, to] : network.edges) {
    next[from].push_back(to);
    ++waits[to];
  }
  std::vector<std::size_t> ready;
  std::vector<bool> seen(count, false);
  for (std::size_t done = 0; done < count;) {
    if (ready.empty()) {
      // At first the inputs; later, if ever, the first node of a circle.
      const bool circle = done > 0;
      for (std::size_t i = 0; i < count && (!circle || ready.empty()); ++i) {
        if (!seen[i] && (waits[i] == 0 || circle)) {
          ready.push_back(i);
          seen[i] = true;
        }
      }
      if (ready.empty()) {
        ready.push_back(0);
        seen[0] = true;
      }
    }
    const std::size_t node = ready.back();
    ready.pop_back();
    ++done;
    for (const std::size_t after : next[node]) {
      if (seen[after]) continue;
      depths[after] = std::max(depths[after], depths[node] + 1);
      if (--waits[after] == 0) {
        ready.push_back(after);
        seen[after] = true;
      }
    }
  }
  return depths;
}

Drawing draw_diagram(const Figure& figure, const Colours& colours) {
  const Network network = network_of(figure);
  const Layout layout = layout_of(network);
  std::vector<Gutter> gutters(layout.lanes_of_column.size());
  const std::vector<Way> ways = ways_of(network, layout, gutters);
  double width = 0.0, heaviest = 0.0;
  for (std::size_t i = 0; i < gutters.size(); ++i) {
    width += column_width(layout, i) + gutters[i].width();
  }
  for (const Node& node : network.nodes) {
    if (std::isfinite(node.weight)) heaviest = std::max(heaviest, node.weight);
  }
  const std::vector<std::string> groups = groups_of(figure);
  Drawing drawing{.width = std::max(640.0, width),
                  .height = kPitch * static_cast<double>(layout.rows) + 8.0};
  for (const std::string& group : groups) {
    drawing.legend.push_back({.name = group, .paint = {colours.of(group)}});
  }
  Svg svg;
  DiagramPainter painter(svg, layout, gutters, 0.5 * (drawing.width - width) + 8.0);
  for (const Way& way : ways) painter.arrow(way);
  for (std::size_t i = 0; i < network.nodes.size(); ++i) {
    const Node& node = network.nodes[i];
    const auto group = std::ranges::find(groups, node.group) - groups.begin();
    const bool weighs = heaviest > 0.0 && std::isfinite(node.weight);
    svg.open(fmt::format(R"(class="node" data-series="{}" data-node="{}")", group, i));
    painter.box(i, node, colours.of(node.group),
                weighs ? std::max(0.0, node.weight) / heaviest : 0.0);
    svg.close();
  }
  drawing.elements = std::move(svg).text();
  return drawing;
}

}  // namespace ridgeline::report::plot
