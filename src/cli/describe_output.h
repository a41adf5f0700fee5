#pragma once

// What `describe` prints: tables for people, a CSV file of the layers.

#include <optional>
#include <string>
#include <vector>

#include "documents/describe.h"

namespace ridgeline::cli {

// The titles of the table of layers.
[[nodiscard]] std::vector<std::string> layer_columns();

[[nodiscard]] std::string description_text(const Description& description, bool per_layer);
[[nodiscard]] std::string layers_csv(const Description& description);

}  // namespace ridgeline::cli
