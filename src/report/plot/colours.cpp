#include "report/plot/colours.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace ridgeline::report::plot {
namespace {

// src/report/page/page.css has the same ones.
constexpr std::array<const char*, 10> kPalette = {"#1f6fb5", "#d9600d", "#0a8f6c", "#b5489a",
                                                  "#c08a00", "#4aa5d8", "#6750a8", "#8c5a3c",
                                                  "#7f8c1f", "#6b7785"};

struct Rgb {
  double red, green, blue;
};

Rgb rgb_of(const std::string& text) {
  const unsigned long value = std::stoul(text.substr(1), nullptr, 16);
  return {static_cast<double>(value >> 16U & 0xffU), static_cast<double>(value >> 8U & 0xffU),
          static_cast<double>(value & 0xffU)};
}

const std::string& key_of(const Series& series) {
  return series.group.empty() ? series.name : series.group;
}

// The names of a figure that have colours, each once.
std::vector<std::string> keys_of(const Figure& figure) {
  std::vector<std::string> keys;
  const auto add = [&](const std::string& key) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  };
  if (figure.kind == FigureKind::spans) {
    for (const Span& span : figure.spans) add(span.group);
  } else if (figure.kind == FigureKind::diagram) {
    for (const Node& node : figure.nodes) add(node.group);
  } else {
    for (const Series& series : figure.series) {
      if (series.style != SeriesStyle::roof || !series.group.empty()) add(key_of(series));
    }
  }
  return keys;
}

}  // namespace

std::string lighter(const std::string& colour, double share) {
  const Rgb c = rgb_of(colour);
  const auto byte = [share](double value) {
    return static_cast<int>(std::lround(value + (255.0 - value) * share));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", byte(c.red), byte(c.green), byte(c.blue));
}

bool is_light(const std::string& colour) {
  const Rgb c = rgb_of(colour);
  return 0.299 * c.red + 0.587 * c.green + 0.114 * c.blue > 140.0;
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
    std::array<int, kPalette.size()> used = {};
    for (const std::string& other : beside[key]) {
      const auto known = known_.find(other);
      if (known == known_.end()) continue;
      const auto* place = std::find(kPalette.begin(), kPalette.end(), known->second);
      ++used[static_cast<std::size_t>(place - kPalette.begin())];
    }
    const auto* least = std::min_element(used.begin(), used.end());
    known_[key] = kPalette[static_cast<std::size_t>(least - used.begin())];
  }
}

const std::string& Colours::of(const std::string& name) const {
  static const std::string first = kPalette[0];
  const auto known = known_.find(name);
  return known == known_.end() ? first : known->second;
}

std::vector<std::string> Colours::of(const std::vector<const Series*>& series) const {
  constexpr std::array<double, 5> kPaler = {0.0, 0.38, 0.6, 0.2, 0.5};
  std::map<std::string, std::vector<std::string>> names;  // that have a colour
  std::vector<std::string> colours;
  for (const Series* each : series) {
    if (each->style == SeriesStyle::roof && each->group.empty()) {
      colours.emplace_back(kRoof);
      continue;
    }
    std::vector<std::string>& sharing = names[of(key_of(*each))];
    auto place = std::find(sharing.begin(), sharing.end(), key_of(*each));
    if (place == sharing.end()) place = sharing.insert(place, key_of(*each));
    const auto turn = static_cast<std::size_t>(place - sharing.begin());
    colours.push_back(lighter(of(key_of(*each)), kPaler[turn % kPaler.size()]));
  }
  return colours;
}

}  // namespace ridgeline::report::plot
