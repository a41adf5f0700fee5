#include "report/exhibits/figure_values.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/error.h"

namespace ridgeline::report {
namespace {

// Values that are wider apart are told apart on a logarithmic axis only.
constexpr double kWide = 30.0;
// Points of all series of a figure together, and of one of them.
constexpr std::size_t kMostPoints = 4000, kMostOfOne = 1500;

// Spans of one track that are no longer than `length`, with gaps up to `gap`, become one: named by
// their number and coloured as most of their time.
std::vector<Span> joined_up_to(const std::vector<Span>& spans, double length, double gap) {
  std::vector<Span> kept;
  for (std::size_t first = 0; first < spans.size();) {
    std::size_t next = first + 1;
    if (spans[first].end - spans[first].begin <= length) {
      while (next < spans.size() && spans[next].track == spans[first].track &&
             spans[next].end - spans[next].begin <= length &&
             spans[next].begin - spans[next - 1].end <= gap) {
        ++next;
      }
    }
    Span span = spans[first];
    if (next > first + 1) {
      std::map<std::string, double> seconds;
      for (std::size_t i = first; i < next; ++i) {
        seconds[spans[i].group] += spans[i].end - spans[i].begin;
        span.end = std::max(span.end, spans[i].end);
      }
      span.group = std::ranges::max_element(seconds, [](const auto& a, const auto& b) {
                     return a.second < b.second;
                   })->first;
      span.name = fmt::format("{} short ones, {} first", next - first, spans[first].name);
    }
    kept.push_back(std::move(span));
    first = next;
  }
  return kept;
}

}  // namespace

DisplayUnit seconds_unit(double most) {
  if (most < 1e-3) return {1e6, "µs"};
  return most < 1.0 ? DisplayUnit{1e3, "ms"} : DisplayUnit{1.0, "s"};
}

DisplayUnit bytes_unit(double most) {
  constexpr double kKib = 1024.0;
  if (most < kKib * kKib) return {1.0 / kKib, "KiB"};
  if (most < 4.0 * kKib * kKib * kKib) return {1.0 / (kKib * kKib), "MiB"};
  return {1.0 / (kKib * kKib * kKib), "GiB"};
}

DisplayUnit flops_unit(double most) {
  return most < 5e12 ? DisplayUnit{1e-9, "GFLOP/s"} : DisplayUnit{1e-12, "TFLOP/s"};
}

void choose_y_axis(Figure& figure) {
  double low = 0.0, high = 0.0;
  for (const Series& series : figure.series) {
    for (const Point& point : series.points) {
      if (point.y <= 0.0) return;
      low = low == 0.0 ? point.y : std::min(low, point.y);
      high = std::max(high, point.y);
    }
  }
  figure.y.logarithmic = low > 0.0 && high / low > kWide;
  if (!figure.y.logarithmic) figure.y.low = 0.0;
}

double rounded(double value, int digits) {
  if (value == 0.0 || !std::isfinite(value)) return value;
  const int places = digits - 1 - static_cast<int>(std::floor(std::log10(std::abs(value))));
  // Powers of ten below 1 are not exact: dividing by those above gives the nearest number.
  const double scale = std::pow(10.0, std::abs(places));
  return places >= 0 ? std::round(value * scale) / scale : std::round(value / scale) * scale;
}

std::vector<Point> thinned(std::vector<Point> points, std::size_t most) {
  if (points.size() <= most || most < 2) return points;
  const std::size_t stretches = most / 2;
  std::vector<Point> kept;
  kept.reserve(most);
  for (std::size_t stretch = 0; stretch < stretches; ++stretch) {
    const std::size_t first = stretch * points.size() / stretches;
    const std::size_t end = (stretch + 1) * points.size() / stretches;
    const auto [low, high] =
        std::minmax_element(points.begin() + static_cast<std::ptrdiff_t>(first),
                            points.begin() + static_cast<std::ptrdiff_t>(end),
                            [](const Point& a, const Point& b) { return a.y < b.y; });
    kept.push_back(*std::min(low, high));
    if (low != high) kept.push_back(*std::max(low, high));
  }
  return kept;
}

std::size_t points_each(std::size_t series) {
  return std::min(kMostOfOne, kMostPoints / std::max<std::size_t>(series, 1));
}

std::size_t merge_shortest(std::vector<Span>& spans, std::size_t most) {
  std::map<std::string, std::size_t> order;
  for (const Span& span : spans) order.emplace(span.track, order.size());
  std::ranges::stable_sort(spans, [&](const Span& a, const Span& b) {
    return std::pair(order[a.track], a.begin) < std::pair(order[b.track], b.begin);
  });
  if (spans.size() <= most) return 0;
  std::vector<double> lengths;
  lengths.reserve(spans.size());
  for (const Span& span : spans) lengths.push_back(span.end - span.begin);
  std::ranges::sort(lengths);
  // The shortest tenth first, and gaps stay visible where that is enough; in the end whole tracks.
  std::vector<Span> merged = spans;
  const auto try_to = [&](std::size_t tenths, double gaps) {
    if (merged.size() <= most) return;
    const double length = lengths[(lengths.size() - 1) * tenths / 10];
    merged = joined_up_to(spans, length, gaps > 0.0 ? gaps * length : 1e9);
  };
  for (std::size_t tenths = 1; tenths <= 9; ++tenths) {
    try_to(tenths, 1.0);
    try_to(tenths, 16.0);
  }
  for (std::size_t tenths = 1; tenths <= 10; ++tenths) try_to(tenths, 0.0);
  const std::size_t joined = spans.size() - merged.size();
  spans = std::move(merged);
  return joined;
}

}  // namespace ridgeline::report
