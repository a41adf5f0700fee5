#include "report/plot/colours.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>

#include "report/plot/svg.h"

namespace ridgeline::report::plot {
namespace {

constexpr std::size_t kColours = 8;  // --c0 to --c7 of the page's style

const std::string& key_of(const Series& series) {
  return series.group.empty() ? series.name : series.group;
}

// The names of a figure that have colours, each once.
std::vector<std::string> keys_of(const Figure& figure) {
  if (figure.kind == FigureKind::spans || figure.kind == FigureKind::diagram) {
    return groups_of(figure);
  }
  std::vector<std::string> keys;
  for (const Series& series : figure.series) {
    if (series.style == SeriesStyle::roof && series.group.empty()) continue;
    if (std::ranges::find(keys, key_of(series)) == keys.end()) {
      keys.push_back(key_of(series));
    }
  }
  return keys;
}

}  // namespace

std::vector<std::string> groups_of(const Figure& figure) {
  std::vector<std::string> groups;
  const auto add = [&](const std::string& group) {
    if (std::ranges::find(groups, group) == groups.end()) groups.push_back(group);
  };
  if (figure.kind == FigureKind::spans) {
    for (const Span& span : figure.spans) add(span.group);
  } else {
    for (const Node& node : figure.nodes) add(node.group);
  }
  return groups;
}

Colours::Colours(std::span<const Figure* const> figures) {
  std::vector<std::string> order;
  std::map<std::string, std::set<std::string>> beside;
  for (const Figure* figure : figures) {
    const std::vector<std::string> keys = keys_of(*figure);
    for (const std::string& key : keys) {
      if (!beside.contains(key)) order.push_back(key);
      beside[key].insert(keys.begin(), keys.end());
    }
  }
  for (const std::string& key : order) {
    std::array<int, kColours> used = {};
    for (const std::string& other : beside[key]) {
      const auto known = known_.find(other);
      if (known != known_.end()) ++used[known->second];
    }
    known_[key] = static_cast<std::size_t>(std::ranges::min_element(used) - used.begin());
  }
}

std::size_t Colours::index(const std::string& name) const {
  const auto known = known_.find(name);
  return known == known_.end() ? 0 : known->second;
}

std::string Colours::of(const std::string& name) const {
  return fmt::format("var(--c{})", index(name));
}

std::string Colours::on(const std::string& name) const {
  return fmt::format("var(--on-c{})", index(name));
}

std::vector<Paint> Colours::of(const std::vector<Series>& series) const {
  constexpr std::array<double, 5> kShades = {1.0, 0.62, 0.4, 0.8, 0.5};
  std::map<std::string, std::size_t> sharing;
  std::vector<Paint> paints;
  for (const Series& each : series) {
    const bool grey = each.style == SeriesStyle::roof && each.group.empty();
    Paint paint{grey ? kRoof : of(key_of(each)), 1.0, on(key_of(each))};
    if (each.style != SeriesStyle::roof) {
      paint.shade = kShades[sharing[paint.colour]++ % kShades.size()];
      if (paint.shade < 0.7) paint.on = kInk;
    }
    paints.push_back(std::move(paint));
  }
  return paints;
}

}  // namespace ridgeline::report::plot
