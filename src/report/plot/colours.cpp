#include "report/plot/colours.h"

#include <fmt/core.h>

#include <array>
#include <cmath>

namespace ridgeline::report::plot {
namespace {

constexpr std::array<unsigned, 8> kPalette = {0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7,
                                              0xe69f00, 0x56b4e9, 0x4d4d4d, 0x9a8b00};

struct Rgb {
  double red, green, blue;
};

Rgb rgb_of(unsigned value) {
  return {static_cast<double>(value >> 16U & 0xffU), static_cast<double>(value >> 8U & 0xffU),
          static_cast<double>(value & 0xffU)};
}

Rgb rgb_of(const std::string& text) {
  return rgb_of(static_cast<unsigned>(std::stoul(text.substr(1), nullptr, 16)));
}

std::string text_of(Rgb c) {
  const auto byte = [](double value) { return static_cast<int>(std::lround(value)); };
  return fmt::format("#{:02x}{:02x}{:02x}", byte(c.red), byte(c.green), byte(c.blue));
}

Rgb mixed(Rgb a, Rgb b, double share) {
  return {a.red + (b.red - a.red) * share, a.green + (b.green - a.green) * share,
          a.blue + (b.blue - a.blue) * share};
}

}  // namespace

std::string colour(std::size_t index) {
  const Rgb base = rgb_of(kPalette[index % kPalette.size()]);
  switch (index / kPalette.size() % 3) {
    case 0:
      return text_of(base);
    case 1:
      return text_of(mixed(base, rgb_of(0xffffffU), 0.45));
    default:
      return text_of(mixed(base, rgb_of(0U), 0.4));
  }
}

std::string lighter(const std::string& colour, double share) {
  return text_of(mixed(rgb_of(colour), rgb_of(0xffffffU), share));
}

bool is_light(const std::string& colour) {
  const Rgb c = rgb_of(colour);
  return 0.299 * c.red + 0.587 * c.green + 0.114 * c.blue > 140.0;
}

const std::string& Colours::of(const std::string& name) {
  return known_.try_emplace(name, colour(known_.size())).first->second;
}

}  // namespace ridgeline::report::plot
