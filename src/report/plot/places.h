#pragma once

// Which parts of a picture are taken already: labels go where nothing else is.

#include <string>
#include <vector>

#include "report/plot/svg.h"

namespace ridgeline::report::plot {

class Places {
 public:
  explicit Places(const Box& within) : within_(within) {}

  void take(const Box& box) { taken_.push_back(box); }
  // Takes the corridor of a straight line.
  void take_line(double x1, double y1, double x2, double y2, double half_width);
  [[nodiscard]] bool is_free(const Box& box) const;

  // Draws the text beside a point of the radius, on the first side that is free, further away with
  // a thin line to it; false: no place is free.
  bool label(Svg& svg, double x, double y, double radius, const std::string& text,
             const TextStyle& style);
  // Draws the text along a line, above it, at the first of some places that is free.
  bool label_along(Svg& svg, double x1, double y1, double x2, double y2, const std::string& text,
                   TextStyle style);

 private:
  Box within_;
  std::vector<Box> taken_;
};

}  // namespace ridgeline::report::plot
