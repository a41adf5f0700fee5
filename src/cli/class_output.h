#pragma once

// What commands tell about single classes.

#include <optional>
#include <span>
#include <string>

#include "documents/classes.h"

namespace ridgeline::cli {

[[nodiscard]] std::string percent_or_na(const std::optional<double>& share);

// The whole matrix with samples, precision and recall of each class.
[[nodiscard]] std::string confusion_text(const ConfusionMatrix& matrix,
                                         std::span<const std::string> names);
// A row for each class that has samples or predictions: samples, precision, recall, and the class
// it is most often taken for.
[[nodiscard]] std::string per_class_text(const ConfusionMatrix& matrix,
                                         std::span<const std::string> names);

}  // namespace ridgeline::cli
