#pragma once

// A sheet of pixels that is written down as commands for gnuplot. Texts, boxes and arrows are
// placed in pixels from the top left corner; series are drawn by gnuplot's own styles over its
// axes. What gnuplot would lay out by itself (legends, margins) is placed here, so that nothing
// overlaps.

#include <string>
#include <string_view>
#include <vector>

#include "report/plot/colours.h"
#include "report/plot/scale.h"

namespace ridgeline::report::plot {

// A figure as commands that draw it on any terminal of that size and shape.
struct Drawing {
  int width = 0, height = 0;  // pixels
  std::string commands;
};

// In gnuplot's single quotes, where nothing but the quote itself has a meaning.
[[nodiscard]] std::string in_quotes(std::string_view text);

// gnuplot's words for the nth dash, from 1: short enough for the sample of a legend.
[[nodiscard]] const char* dash_text(int dash);

struct TextStyle {
  double size = 13.0;  // pixels
  std::string colour = kInk;
  char align = 'l';     // l, c, r
  double rotate = 0.0;  // degrees, against the clock
  bool bold = false;
};

struct LineStyle {
  std::string colour = kFrame;
  double width = 1.0;
  int dash = 1;
  bool arrow = false;
  bool behind = false;  // boxes and series
};

struct Box {
  double left = 0.0, top = 0.0, right = 0.0, bottom = 0.0;
};

class Canvas {
 public:
  Canvas(double width, double height) : width_(width), height_(height) {}

  // `y` is the middle of the letters.
  void text(double x, double y, std::string_view text, const TextStyle& style);
  // An empty border: none.
  void box(const Box& box, const std::string& fill, const std::string& border = {});
  void line(double x1, double y1, double x2, double y2, const LineStyle& style);
  void mark(double x, double y, int marker, const std::string& colour, double size);

  // Sets gnuplot's axes up: within `frame`, with these scales, whose pixels are set to it.
  void axes(const Box& frame, Scale& x, Scale& y);
  // For drawings of boxes and lines alone.
  void no_axes();
  // Marks and numbers along an axis, with lines across the plot.
  void ticks(char axis, const std::vector<Tick>& ticks);

  // One row of numbers a line; an empty row breaks lines. Gives the block's name.
  std::string data(const std::vector<std::vector<double>>& rows);
  // "with lines lc rgb ...": what of the data is drawn, and how. Later ones lie above.
  void plot(const std::string& block, const std::string& how);

  // An interval from `low` to `high` at `at` of the other scale, with short bars at its ends, as
  // rows for lines. `upright`: along the y axis.
  static void add_whisker(std::vector<std::vector<double>>& rows, const Scale& across, double at,
                          double low, double high, bool upright);

  [[nodiscard]] double width() const { return width_; }
  [[nodiscard]] double height() const { return height_; }
  [[nodiscard]] Drawing drawing() &&;

 private:
  [[nodiscard]] std::string place(double x, double y) const;

  double width_, height_;
  std::string commands_, plots_;
  int blocks_ = 0;
};

}  // namespace ridgeline::report::plot
