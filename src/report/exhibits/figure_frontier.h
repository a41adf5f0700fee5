#pragma once

// Predicted trainings by time and cost, or time and energy.

#include <span>
#include <string>

#include "predict/training.h"
#include "report/figure.h"

namespace ridgeline::report {

// Of one network: a dot for each training, by device, and a line through those that no other beats.
// `currency` names the unit of costs; it may be empty.
[[nodiscard]] Figure frontier_figure(std::span<const predict::Prediction> rows,
                                     std::span<const predict::Training> trainings,
                                     const std::string& currency);

}  // namespace ridgeline::report
