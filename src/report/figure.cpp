#include "report/figure.h"

#include <algorithm>

namespace ridgeline::report {

bool Figure::empty() const {
  if (kind == FigureKind::spans) return spans.empty();
  if (kind == FigureKind::diagram) return nodes.empty();
  return std::none_of(series.begin(), series.end(), [](const Series& each) {
    return each.style != SeriesStyle::roof && !each.points.empty();
  });
}

}  // namespace ridgeline::report
