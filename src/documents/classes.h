#pragma once

// Single classes in documents.

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "train/metrics.h"

namespace ridgeline {

// The class's name, or its number where it has none.
[[nodiscard]] std::string class_name(std::span<const std::string> names, std::int64_t label);

[[nodiscard]] nlohmann::ordered_json confusion_json(const ConfusionMatrix& matrix,
                                                    std::span<const std::string> names);

}  // namespace ridgeline
