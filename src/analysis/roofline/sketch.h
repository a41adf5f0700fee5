#pragma once

// A roofline plot of characters: logarithmic axes, FLOP/byte against GFLOP/s.

#include <span>
#include <string>
#include <vector>

#include "analysis/roofline/points.h"

namespace ridgeline {

struct SketchPoint {
  char mark = 'a';
  double intensity = 0.0;         // FLOP/byte
  double flops_per_second = 0.0;  // FLOP/s
};

// The memory roofs under the compute roof of `unit`, with the points. Points without FLOPs have no
// place on logarithmic axes and are left out; empty when none is left or the unit has no roof.
[[nodiscard]] std::string roofline_sketch(const Roofs& roofs, const std::string& unit,
                                          std::span<const SketchPoint> points);

}  // namespace ridgeline
