#include "report/plot/places.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "report/plot/text_size.h"

namespace ridgeline::report::plot {
namespace {

// Small boxes along a line stand for the line.
std::vector<Box> corridor(double x1, double y1, double x2, double y2, double half_width) {
  const double length = std::hypot(x2 - x1, y2 - y1);
  const int count = std::max(1, static_cast<int>(length / std::max(2.0 * half_width, 1.0)));
  std::vector<Box> boxes;
  for (int i = 0; i <= count; ++i) {
    const double share = static_cast<double>(i) / count;
    const double x = x1 + (x2 - x1) * share, y = y1 + (y2 - y1) * share;
    boxes.push_back({x - half_width, y - half_width, x + half_width, y + half_width});
  }
  return boxes;
}

}  // namespace

void Places::take_line(double x1, double y1, double x2, double y2, double half_width) {
  for (const Box& box : corridor(x1, y1, x2, y2, half_width)) take(box);
}

bool Places::is_free(const Box& box) const {
  if (box.left < within_.left || box.right > within_.right || box.top < within_.top ||
      box.bottom > within_.bottom) {
    return false;
  }
  return std::ranges::none_of(taken_, [&](const Box& other) {
    return box.left < other.right && other.left < box.right && box.top < other.bottom &&
           other.top < box.bottom;
  });
}

bool Places::label(Svg& svg, double x, double y, double radius, const std::string& text,
                   const TextStyle& style) {
  // Near by; further away with a line to it that crosses nothing; then with any line.
  struct Try {
    double more;
    bool crossing;
  };
  constexpr Try kTries[] = {{2.0, false},  {14.0, false}, {28.0, false},
                            {44.0, false}, {14.0, true},  {28.0, true}};
  struct Side {
    double x, y;
  };
  constexpr Side kSides[] = {{1, 0}, {0, -1}, {-1, 0}, {0, 1}, {1, -1}, {1, 1}, {-1, -1}, {-1, 1}};
  const double width = text_width(text, style.size), half = 0.6 * style.size;
  for (const auto& [more, crossing] : kTries) {
    const double away = radius + more;
    for (const Side& side : kSides) {
      const double middle_x = x + side.x * (away + width / 2.0);
      const double middle_y = y + side.y * (away + half);
      const Box box{middle_x - width / 2.0, middle_y - half, middle_x + width / 2.0,
                    middle_y + half};
      if (!is_free(box)) continue;
      const bool far = more > 2.0;
      const double start = radius + 1.0, end = far ? away : start;
      const auto line = corridor(x + side.x * (start + 2.0), y + side.y * (start + 2.0),
                                 x + side.x * end, y + side.y * end, 1.0);
      const bool clear = std::ranges::all_of(line, [&](const Box& part) { return is_free(part); });
      if (far && !clear && !crossing) continue;
      take(box);
      TextStyle placed = style;
      placed.align = 'l';
      svg.text(box.left, middle_y, text, placed);
      if (far) {
        for (const Box& part : line) take(part);
        svg.line(x + side.x * start, y + side.y * start, x + side.x * end, y + side.y * end,
                 stroked(style.colour, 0.7, 0.6));
      }
      return true;
    }
  }
  return false;
}

bool Places::label_along(Svg& svg, double x1, double y1, double x2, double y2,
                         const std::string& text, TextStyle style) {
  if (x2 < x1) {
    std::swap(x1, x2);
    std::swap(y1, y2);
  }
  const double length = std::hypot(x2 - x1, y2 - y1), width = text_width(text, style.size) + 4.0;
  if (length < width + 8.0) return false;
  const double dx = (x2 - x1) / length, dy = (y2 - y1) / length;
  const double lift = 0.5 * style.size * (std::abs(dx) + std::abs(dy)) + 4.0;
  // Level lines are named at their right end, rising ones at their left.
  const bool level = std::abs(dy) < 0.05;
  for (int i = 0; i <= 8; ++i) {
    const double share = (level ? 8 - i : i) / 8.0;
    const double start = 4.0 + share * (length - width - 8.0);
    // Towards the upper side of the line.
    const double left = x1 + dx * start + dy * lift, top = y1 + dy * start - dx * lift;
    const auto boxes = corridor(left, top, left + dx * width, top + dy * width, 0.5 * style.size);
    if (!std::ranges::all_of(boxes, [&](const Box& box) { return is_free(box); })) {
      continue;
    }
    for (const Box& box : boxes) take(box);
    style.rotate = -std::atan2(dy, dx) * 180.0 / std::numbers::pi;
    svg.text(left, top, text, style);
    return true;
  }
  return false;
}

}  // namespace ridgeline::report::plot
