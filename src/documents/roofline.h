#pragma once

// The roofline of stored runs as a JSON document.

#include <optional>
#include <string>
#include <vector>

#include "analysis/roofline/stored.h"

namespace ridgeline {

struct RooflineView {
  Grouping by = Grouping::network;
  std::optional<std::int64_t> top;  // the points that lose the most time; nothing: all, in order
};

// The points of a run as the view asks for them.
[[nodiscard]] std::vector<RooflinePoint> shown_points(const RunRoofline& run, const Roofs& roofs,
                                                      const RooflineView& view);

[[nodiscard]] std::string roofline_json(const StoredRooflines& found, const RooflineView& view);

// What lies above its roof in any run, by step.
[[nodiscard]] std::vector<Finding> roofline_errors(const RunRoofline& run, const Roofs& roofs);

}  // namespace ridgeline
