#pragma once

// A difference op by op as JSON.

#include <nlohmann/json.hpp>
#include <optional>

#include "measure/profile/difference.h"

namespace ridgeline {

// Of the whole difference; nothing: there is none.
[[nodiscard]] std::optional<double> share_of(const StepDifference& difference,
                                             const DifferenceRow& row);
[[nodiscard]] nlohmann::ordered_json difference_json(const StepDifference& difference);

}  // namespace ridgeline
