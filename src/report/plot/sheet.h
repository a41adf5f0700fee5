#pragma once

// What all figures have around their drawing: title, legend, notes.

#include "report/plot/canvas.h"

namespace ridgeline::report::plot {

inline constexpr double kMargin = 16.0;
inline constexpr double kSmall = 12.0;  // size of labels

// A line of the legend.
struct Entry {
  std::string name, colour;
  bool line = false;
  int marker = 0;  // 0: none. Neither line nor marker: a box
  int dash = 1;
};

struct Sheet {
  Canvas canvas;
  Box body;  // what is left for the drawing
};

// A sheet as high as title, legend, body and notes need. `notes`: beside the figure's own.
[[nodiscard]] Sheet sheet_of(const Figure& figure, const std::vector<Entry>& legend,
                             const std::vector<std::string>& notes, double body_height,
                             double width = 960.0);

// Where axes with ticks leave the plot within the body, and their titles beside it. `left`: of the
// widest label of the y axis; `bottom`: of the labels under the x axis.
[[nodiscard]] Box frame_of(Canvas& canvas, const Box& body, const std::string& x_title,
                           const std::string& y_title, double left, double bottom);

[[nodiscard]] double widest(const std::vector<Tick>& ticks);

// "solid circle, square, ...": gnuplot's number of the nth mark.
[[nodiscard]] int marker(std::size_t index);

}  // namespace ridgeline::report::plot
