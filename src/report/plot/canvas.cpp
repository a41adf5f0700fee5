#include "report/plot/canvas.h"

#include <fmt/core.h>

#include <cmath>

#include "base/utf8.h"

namespace ridgeline::report::plot {
namespace {

// A pixel of the screen in points of a font.
constexpr double kPoints = 0.75;

}  // namespace

std::string in_quotes(std::string_view text) {
  std::string result = "'";
  for (const char c : valid_utf8(text)) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      result += ' ';
    } else {
      result += c;
      if (c == '\'') result += c;
    }
  }
  return result + "'";
}

const char* dash_text(int dash) {
  constexpr const char* kDashes[] = {"1", "(8,5)", "(2.5,4)", "(9,4,2.5,4)"};
  return kDashes[static_cast<std::size_t>(dash - 1) % 4];
}

std::string Canvas::place(double x, double y) const {
  return fmt::format("screen {:.5f},{:.5f}", x / width_, 1.0 - y / height_);
}

void Canvas::text(double x, double y, std::string_view text, const TextStyle& style) {
  if (text.empty()) return;
  const char* align = style.align == 'l' ? "left" : style.align == 'c' ? "center" : "right";
  commands_ += fmt::format("set label {} at {} {}", in_quotes(text), place(x, y), align);
  if (style.rotate != 0.0) commands_ += fmt::format(" rotate by {:.2f}", style.rotate);
  commands_ += fmt::format(" font '{},{:g}' tc rgb '{}' front\n",
                           style.bold ? "DejaVu Sans:Bold" : "DejaVu Sans", style.size * kPoints,
                           style.colour);
}

void Canvas::box(const Box& box, const std::string& fill, const std::string& border) {
  commands_ += fmt::format(
      "set object rect from {} to {} front fc rgb '{}' fs solid {}\n", place(box.left, box.bottom),
      place(box.right, box.top), fill,
      border.empty() ? std::string("noborder") : fmt::format("border lc rgb '{}'", border));
}

void Canvas::line(double x1, double y1, double x2, double y2, const LineStyle& style) {
  commands_ += fmt::format(
      "set arrow from {} to {} {} lc rgb '{}' lw {:g} dt {} {}\n", place(x1, y1), place(x2, y2),
      style.arrow ? fmt::format("head filled size screen {:.5f},18", 7.0 / width_) : "nohead",
      style.colour, style.width, dash_text(style.dash), style.behind ? "back" : "front");
}

void Canvas::mark(double x, double y, int marker, const std::string& colour, double size) {
  commands_ += fmt::format("set label '' at {} point pt {} ps {:g} lc rgb '{}' front\n",
                           place(x, y), marker, size, colour);
}

void Canvas::axes(const Box& frame, Scale& x, Scale& y) {
  x.from = frame.left;
  x.to = frame.right;
  y.from = frame.bottom;
  y.to = frame.top;
  commands_ += fmt::format(
      "set lmargin at screen {:.5f}\nset rmargin at screen {:.5f}\n"
      "set tmargin at screen {:.5f}\nset bmargin at screen {:.5f}\n",
      frame.left / width_, frame.right / width_, 1.0 - frame.top / height_,
      1.0 - frame.bottom / height_);
  commands_ += fmt::format("set xrange [{}:{}] noextend\nset yrange [{}:{}] noextend\n", x.low,
                           x.high, y.low, y.high);
  for (const auto& [name, scale] : {std::pair{'x', &x}, std::pair{'y', &y}}) {
    if (scale->logarithmic) commands_ += fmt::format("set logscale {}\n", name);
  }
}

void Canvas::no_axes() {
  commands_ +=
      "unset border\nset lmargin 0\nset rmargin 0\nset tmargin 0\nset bmargin 0\n"
      "set xrange [0:1]\nset yrange [0:1]\n";
}

void Canvas::ticks(char axis, const std::vector<Tick>& ticks) {
  std::string list;
  for (const Tick& tick : ticks) {
    if (!list.empty()) list += ", ";
    std::string label;
    // gnuplot takes the label for a format.
    for (const char c : tick.label) label += c == '%' ? std::string("%%") : std::string(1, c);
    list += fmt::format("{} {}{}", in_quotes(label), tick.value, label.empty() ? " 1" : "");
  }
  commands_ += fmt::format(
      "set {0}tics nomirror out scale 0.6,0.3 font 'DejaVu Sans,{1:g}' tc rgb '{2}' ({3})\n"
      "set grid {0}tics lt 1 lc rgb '{4}' lw 1\n",
      axis, 12.0 * kPoints, kInk, list, kGrid);
}

std::string Canvas::data(const std::vector<std::vector<double>>& rows) {
  const std::string name = fmt::format("$d{}", blocks_++);
  commands_ += name + " << EOD\n";
  for (const std::vector<double>& row : rows) {
    for (const double value : row) {
      commands_ += std::isfinite(value) ? fmt::format("{:.9g} ", value) : std::string("NaN ");
    }
    commands_ += '\n';
  }
  commands_ += "EOD\n";
  return name;
}

void Canvas::add_whisker(std::vector<std::vector<double>>& rows, const Scale& across, double at,
                         double low, double high, bool upright) {
  const double from = across.moved(at, -3.5), to = across.moved(at, 3.5);
  const auto add = [&](double place, double value) {
    rows.push_back(upright ? std::vector<double>{place, value} : std::vector<double>{value, place});
  };
  for (const double end : {low, high}) {
    add(from, end);
    add(to, end);
    rows.emplace_back();
  }
  add(at, low);
  add(at, high);
  rows.emplace_back();
}

void Canvas::plot(const std::string& block, const std::string& how) {
  plots_ += plots_.empty() ? "plot " : ", ";
  plots_ += fmt::format("{} {} notitle", block, how);
}

Drawing Canvas::drawing() && {
  // Without data gnuplot draws nothing at all, not even labels.
  if (plots_.empty()) plots_ = "plot NaN notitle";
  return {static_cast<int>(std::lround(width_)), static_cast<int>(std::lround(height_)),
          commands_ + plots_ + '\n'};
}

}  // namespace ridgeline::report::plot
