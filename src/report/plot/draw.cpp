#include "report/plot/draw.h"

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

}  // namespace ridgeline::report::plot
