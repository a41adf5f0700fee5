#pragma once

// How the roofline of stored runs is printed: for people, as CSV.

#include <optional>
#include <string>

#include "documents/roofline.h"

namespace ridgeline::cli {

// The titles that the tables of points may have.
[[nodiscard]] std::vector<std::string> roofline_columns();

[[nodiscard]] std::string roofline_text(const StoredRooflines& found, const RooflineView& view);
[[nodiscard]] std::string roofline_csv(const StoredRooflines& found, const RooflineView& view);

}  // namespace ridgeline::cli
