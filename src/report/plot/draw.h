#pragma once

// A figure laid out: one drawing serves the page, where a script adds pointing at values and
// hiding series, and the files.

#include "report/figure.h"
#include "report/plot/colours.h"
#include "report/plot/scale.h"
#include "report/plot/svg.h"

namespace ridgeline::report::plot {

inline constexpr double kWidth = 800.0;  // of most drawings

// A sample of the legend: a line, a mark, both, or else a box.
struct Entry {
  std::string name;
  Paint paint;
  bool line = false;
  int marker = -1;  // none
  int dash = 0;
  bool in_files = true;  // roofs are named along themselves, and what is hidden is not there
};

struct Drawing {
  double width = kWidth, height = 0.0;
  std::string elements = {};
  std::string data = {};                // attributes that the page's script reads
  std::vector<Entry> legend = {};       // of all series, or of all groups
  std::vector<std::string> notes = {};  // beside the figure's own
};

[[nodiscard]] Drawing draw_xy(const Figure& figure, const Colours& colours);
[[nodiscard]] Drawing draw_bars(const Figure& figure, const Colours& colours);
[[nodiscard]] Drawing draw_area(const Figure& figure, const Colours& colours);
[[nodiscard]] Drawing draw_spans(const Figure& figure, const Colours& colours);
[[nodiscard]] Drawing draw_diagram(const Figure& figure, const Colours& colours);

[[nodiscard]] Drawing draw(const Figure& figure, const Colours& colours);

// The row of each span of a timeline, from the top; nothing for one that cannot be drawn.
[[nodiscard]] std::vector<std::optional<std::size_t>> span_rows(const Figure& figure);

// The drawing as the page has it: without title, legend and notes, which are text there, and with
// the samples of the legend behind it.
[[nodiscard]] std::string page_drawing(const Figure& figure, const Drawing& drawing);
// The drawing as a file: with all of them, in light colours.
[[nodiscard]] std::string svg_file(const Figure& figure, const Drawing& drawing);

}  // namespace ridgeline::report::plot
