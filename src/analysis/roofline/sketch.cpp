#include "analysis/roofline/sketch.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"

namespace ridgeline {
namespace {

constexpr int kColumns = 68, kRows = 17;
constexpr const char* kSlope = "\u2571";  // ╱
constexpr const char* kFlat = "\u2500";   // ─

// From a range of numbers to places on a logarithmic axis.
struct Axis {
  double low, high;  // logarithms to base 10
  int places;

  [[nodiscard]] int place(double value) const {
    const double share = (std::log10(value) - low) / (high - low);
    return static_cast<int>(std::lround(share * (places - 1)));
  }
  [[nodiscard]] double value(int at) const {
    return std::pow(10.0, low + (high - low) * at / (places - 1));
  }
  [[nodiscard]] bool holds(int at) const { return at >= 0 && at < places; }
};

class Canvas {
 public:
  Canvas() {
    for (auto& row : cells_) row.fill(" ");
  }
  void set(int column, int row, const std::string& cell, bool over) {
    std::string& place = cells_[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)];
    if (over || place == " ") place = cell;
  }
  [[nodiscard]] std::string row_text(int row) const {
    std::string text;
    for (const std::string& cell : cells_[static_cast<std::size_t>(row)]) text += cell;
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  }

 private:
  std::array<std::array<std::string, kColumns>, kRows> cells_;
};

// Whole decades at the bottom, so that labels are powers of ten where they fall on rows.
Axis axis_around(double smallest, double largest, int places) {
  const double low = std::floor(std::log10(smallest) - 0.05);
  return {low, std::max(std::log10(largest) + 0.15, low + 1.0), places};
}

void draw_roofs(Canvas& canvas, const Axis& x, const Axis& y, double peak, const Roofs& roofs) {
  for (const MemoryRoof& roof : roofs.memory) {
    for (int column = 0; column < kColumns; ++column) {
      const double sloped = x.value(column) * roof.bytes_per_second;
      const int row = y.place(std::min(sloped, peak));
      if (y.holds(row)) canvas.set(column, row, sloped < peak ? kSlope : kFlat, false);
    }
    // The name stands where the slope enters the picture.
    for (int column = 0; column < kColumns - 8; ++column) {
      const double sloped = x.value(column) * roof.bytes_per_second;
      const int row = y.place(sloped);
      if (!y.holds(row) || sloped >= peak) continue;
      for (std::size_t i = 0; i < roof.level.size(); ++i) {
        canvas.set(column + 1 + static_cast<int>(i), row, std::string(1, roof.level[i]), true);
      }
      break;
    }
  }
}

std::string number_text(double number) {
  return number >= 1000.0 ? fmt::format("{:.0f}", number) : fmt::format("{:.3g}", number);
}

std::string ticks(const Axis& x) {
  std::string marks(kColumns + 8, ' ');
  for (double decade = std::ceil(x.low); decade <= x.high; decade += 1.0) {
    const double value = std::pow(10.0, decade);
    const std::string text = number_text(value);
    const auto at = static_cast<std::size_t>(std::clamp(x.place(value), 0, kColumns - 1));
    marks.replace(at, text.size(), text);
  }
  marks.erase(marks.find_last_not_of(' ') + 1);
  return marks;
}

}  // namespace

std::string roofline_sketch(const Roofs& roofs, const std::string& unit,
                            std::span<const SketchPoint> points) {
  const ComputeRoof* compute = roofs.find_compute(unit);
  std::vector<SketchPoint> shown;
  for (const SketchPoint& point : points) {
    if (point.intensity > 0.0 && point.flops_per_second > 0.0) shown.push_back(point);
  }
  if (compute == nullptr || roofs.memory.empty() || shown.empty()) return {};

  const double ridge = ridge_point(*compute, roofs.memory.back());
  double left = ridge, right = ridge * 4.0, bottom = compute->flops_per_second / 30.0;
  for (const SketchPoint& point : shown) {
    left = std::min(left, point.intensity);
    right = std::max(right, point.intensity);
    bottom = std::min(bottom, point.flops_per_second);
  }
  const Axis x = axis_around(left, right, kColumns);
  const Axis y = axis_around(bottom, compute->flops_per_second, kRows);
  Canvas canvas;
  draw_roofs(canvas, x, y, compute->flops_per_second, roofs);
  for (const SketchPoint& point : shown) {
    const int column = x.place(point.intensity), row = y.place(point.flops_per_second);
    if (x.holds(column) && y.holds(row)) canvas.set(column, row, std::string(1, point.mark), true);
  }

  std::string text = "   GFLOP/s\n";
  for (int row = kRows; row-- > 0;) {
    const bool labelled = row % 4 == 0;
    text += fmt::format("{:>10} {}{}\n", labelled ? number_text(y.value(row) / 1e9) : "",
                        labelled ? "\u2524" : "\u2502", canvas.row_text(row));
  }
  text += fmt::format("{:>10} \u2514", "");
  for (int column = 0; column < kColumns; ++column) text += kFlat;
  text += fmt::format("\n{:>12}{}  FLOP/byte\n", "", ticks(x));
  return text;
}

}  // namespace ridgeline
