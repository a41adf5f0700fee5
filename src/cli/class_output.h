#pragma once

// What commands tell about single classes.

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

#include "train/metrics.h"

namespace ridgeline::cli {

// The class's name, or its number where it has none.
[[nodiscard]] std::string class_name(std::span<const std::string> names, std::int64_t label);

[[nodiscard]] std::string percent_or_na(const std::optional<double>& share);

// The whole matrix with samples, precision and recall of each class.
[[nodiscard]] std::string confusion_text(const ConfusionMatrix& matrix,
                                         std::span<const std::string> names);
[[nodiscard]] nlohmann::ordered_json confusion_json(const ConfusionMatrix& matrix,
                                                    std::span<const std::string> names);
// A row for each class that has samples or predictions: samples, precision, recall, and the class
// it is most often taken for.
[[nodiscard]] std::string per_class_text(const ConfusionMatrix& matrix,
                                         std::span<const std::string> names);

}  // namespace ridgeline::cli
