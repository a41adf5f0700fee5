#include "report/figure.h"

#include <algorithm>

namespace ridgeline::report {

bool Figure::empty() const {
  if (kind == FigureKind::spans) return spans.empty();
  if (kind == FigureKind::diagram) return nodes.empty();
  return std::ranges::none_of(series, [](const Series& each) {
    return each.style != SeriesStyle::roof && !each.points.empty();
  });
}

}  // namespace ridgeline::report
