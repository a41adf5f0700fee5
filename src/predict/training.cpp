#include "predict/training.h"

#include <algorithm>
#include <cmath>

namespace ridgeline::predict {
namespace {

constexpr double kSecondsOfHour = 3600.0;

Range times(const Range& range, double factor) { return {range.low * factor, range.high * factor}; }

Training training_of(const Prediction& row, std::int64_t samples, std::int64_t epochs) {
  const auto many = static_cast<double>(epochs);
  const double steps = std::ceil(static_cast<double>(samples) / static_cast<double>(row.batch));
  Training made;
  made.seconds = times(row.epoch_seconds(samples), many);
  if (row.joules) made.joules = times(*row.joules, steps * many);
  if (row.per_hour) made.cost = times(made.seconds, *row.per_hour / kSecondsOfHour);
  return made;
}

bool same_network(const Prediction& a, const Prediction& b) {
  return a.model == b.model && a.image == b.image && a.inference == b.inference;
}

struct Place {
  double seconds, effort;
  [[nodiscard]] bool beats(const Place& other) const {
    return seconds <= other.seconds && effort <= other.effort &&
           (seconds < other.seconds || effort < other.effort);
  }
};

}  // namespace

std::string_view name_of(Effort effort) { return effort == Effort::cost ? "cost" : "energy"; }

Effort effort_of(std::span<const Prediction> rows) {
  const bool priced =
      std::ranges::any_of(rows, [](const Prediction& row) { return row.per_hour.has_value(); });
  return priced ? Effort::cost : Effort::energy;
}

double middle_of(const Range& range) { return std::sqrt(range.low * range.high); }

std::vector<Training> trainings_of(std::span<const Prediction> rows, std::int64_t samples,
                                   std::int64_t epochs) {
  const Effort effort = effort_of(rows);
  std::vector<Training> trainings;
  std::vector<std::optional<Place>> places;
  for (const Prediction& row : rows) {
    const Training& made = trainings.emplace_back(training_of(row, samples, epochs));
    places.emplace_back();
    if (!row.fits || !made.of(effort)) continue;
    places.back() = Place{middle_of(made.seconds), middle_of(*made.of(effort))};
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!places[i]) continue;
    bool beaten = false;
    for (std::size_t j = 0; j < rows.size(); ++j) {
      beaten =
          beaten || (places[j] && same_network(rows[i], rows[j]) && places[j]->beats(*places[i]));
    }
    trainings[i].frontier = !beaten;
  }
  return trainings;
}

}  // namespace ridgeline::predict
