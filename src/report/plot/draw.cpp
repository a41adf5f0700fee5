#include "report/plot/draw.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"

namespace ridgeline::report::plot {

Drawing draw(const Figure& figure, const Colours& colours) {
  switch (figure.kind) {
    case FigureKind::xy:
      return draw_xy(figure, colours);
    case FigureKind::bars:
      return draw_bars(figure, colours);
    case FigureKind::area:
      return draw_area(figure, colours);
    case FigureKind::spans:
      return draw_spans(figure, colours);
    case FigureKind::diagram:
      break;
  }
  return draw_diagram(figure, colours);
}

std::vector<const Series*> shown_series(const Figure& figure, std::vector<std::string>& notes) {
  const bool all = std::all_of(figure.series.begin(), figure.series.end(),
                               [](const Series& series) { return series.hidden; });
  std::vector<const Series*> shown;
  std::vector<std::string> hidden;
  for (const Series& series : figure.series) {
    if (series.points.empty()) continue;
    if (series.hidden && !all) {
      hidden.push_back(series.name);
    } else {
      shown.push_back(&series);
    }
  }
  if (!hidden.empty()) notes.push_back(fmt::format("Not drawn here: {}.", joined(hidden, ", ")));
  return shown;
}

void note_left_out(std::vector<std::string>& notes, std::size_t count) {
  if (count == 0) return;
  notes.push_back(
      fmt::format("{} of zero or below {} no place on a logarithmic axis.",
                  count == 1 ? std::string("One value") : fmt::format("{} values", count),
                  count == 1 ? "has" : "have"));
}

}  // namespace ridgeline::report::plot
