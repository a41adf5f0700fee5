#pragma once

// Measured ceilings for people and for programs.

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "store/records.h"

namespace ridgeline::cli {

// The titles of the table.
[[nodiscard]] std::vector<std::string> ceiling_columns();

// "123.4 GFLOP/s", "98.7 GB/s", "2.31 µs"
[[nodiscard]] std::string ceiling_value_text(double value, const std::string& unit);
[[nodiscard]] std::string ceilings_text(std::span<const Ceiling> ceilings);
[[nodiscard]] nlohmann::ordered_json ceilings_json(std::span<const Ceiling> ceilings);

}  // namespace ridgeline::cli
