#pragma once

// Units that are chosen for reading, and lines that are thinned for drawing.

#include <span>
#include <string>
#include <vector>

#include "report/figure.h"

namespace ridgeline::report {

// A value times the factor is in the unit.
struct DisplayUnit {
  double factor = 1.0;
  std::string unit;
};
// For values up to `most`: "µs", "ms", "s"; "KiB", "MiB", "GiB"; "GFLOP/s", "TFLOP/s".
[[nodiscard]] DisplayUnit seconds_unit(double most);
[[nodiscard]] DisplayUnit bytes_unit(double most);
[[nodiscard]] DisplayUnit flops_unit(double most);

// Makes the y axis logarithmic where the positive values of the series are far apart.
void choose_y_axis(Figure& figure);

// To so many significant digits: dense series need no more.
[[nodiscard]] double rounded(double value, int digits = 5);
// At most `most` points: of each stretch of x the lowest and the highest, so that outliers and
// periodic patterns stay. REQUIRES: x does not fall.
[[nodiscard]] std::vector<Point> thinned(std::vector<Point> points, std::size_t most);
// What a series may have when so many of them share a figure.
[[nodiscard]] std::size_t points_each(std::size_t series);

// Spans in order of time; where there are more than `most`, neighbours of a track and group are
// joined, the shortest first. The number of those that were joined.
std::size_t merge_shortest(std::vector<Span>& spans, std::size_t most);

}  // namespace ridgeline::report
