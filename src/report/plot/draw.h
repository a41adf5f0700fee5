#pragma once

// Figures as commands for gnuplot, one function for each kind.

#include "report/plot/canvas.h"

namespace ridgeline::report::plot {

[[nodiscard]] Drawing draw_xy(const Figure& figure, const Colours& colours);
[[nodiscard]] Drawing draw_bars(const Figure& figure, const Colours& colours);
[[nodiscard]] Drawing draw_area(const Figure& figure, const Colours& colours);
[[nodiscard]] Drawing draw_spans(const Figure& figure, const Colours& colours);
[[nodiscard]] Drawing draw_diagram(const Figure& figure, const Colours& colours);

[[nodiscard]] Drawing draw(const Figure& figure, const Colours& colours);

// Those that a picture shows: not the hidden ones, unless all are hidden; without points, none.
// What is left out is told in `notes`.
[[nodiscard]] std::vector<const Series*> shown_series(const Figure& figure,
                                                      std::vector<std::string>& notes);

// "3 values of zero or below have no place on the logarithmic axis." Nothing for none.
void note_left_out(std::vector<std::string>& notes, std::size_t count);

}  // namespace ridgeline::report::plot
