#pragma once

// What whole trainings would take, and which of them no other beats.

#include <optional>
#include <span>
#include <vector>

#include "predict/predict.h"

namespace ridgeline::predict {

// What counts beside the time.
enum class Effort : std::uint8_t { energy, cost };
[[nodiscard]] std::string_view name_of(Effort effort);
// Cost where a price is known of any, else energy.
[[nodiscard]] Effort effort_of(std::span<const Prediction> rows);

struct Training {
  Range seconds;
  std::optional<Range> joules, cost;
  // Whether no other training of the same network takes less time and no more of the effort, or
  // less of it and no more time; by the middles of the ranges. Nothing where the step does not fit
  // into the device's memory, or its effort is not known.
  std::optional<bool> frontier;

  [[nodiscard]] const std::optional<Range>& of(Effort effort) const {
    return effort == Effort::cost ? cost : joules;
  }
};

// Of so many samples an epoch. REQUIRES: at least 1 of both.
[[nodiscard]] std::vector<Training> trainings_of(std::span<const Prediction> rows,
                                                 std::int64_t samples, std::int64_t epochs);

// The middle of a range whose ends are a factor off it.
[[nodiscard]] double middle_of(const Range& range);

}  // namespace ridgeline::predict
