#pragma once

// Two axes with ticks, grid and titles around a plot.

#include "report/plot/draw.h"

namespace ridgeline::report::plot {

struct AxisLook {
  std::string title;
  std::vector<Tick> ticks = {};
};

struct FrameRequest {
  double height = 0.0;  // of the whole drawing
  AxisLook x, y;
  double left = 0.0;     // room for names of categories or tracks beside the y axis
  double bottom = 20.0;  // room for the ticks or names under the x axis
};

// Draws them, and sets the scales to the pixels of the plot, which is given.
Box draw_frame(Svg& svg, const FrameRequest& request, Scale& x, Scale& y);

// How the page's script finds the pixels of values: data-x and data-y.
[[nodiscard]] std::string scale_data(const Scale& x, const Scale& y);

// The attributes of a series' group.
[[nodiscard]] std::string series_group(const Figure& figure, std::size_t series, std::size_t points,
                                       const char* name = "series");

// "3 values of zero or below have no place on the logarithmic axis." Nothing for none.
void note_left_out(std::vector<std::string>& notes, std::size_t count);

// A path from `low` to `high` at `at` of the other axis, with short bars at its ends.
[[nodiscard]] std::string whisker(double at, double low, double high, bool upright);

}  // namespace ridgeline::report::plot
