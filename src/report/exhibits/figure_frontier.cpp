#include "report/exhibits/figure_frontier.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/error.h"
#include "report/analysis/prose.h"
#include "report/exhibits/figure_runs.h"
#include "report/exhibits/figure_values.h"

namespace ridgeline::report {
namespace {

using predict::Effort;
using predict::Prediction;
using predict::Training;

constexpr const char* kFrontier = "no other is both faster and cheaper";
constexpr const char* kEnergyFrontier = "no other needs both less time and less energy";

// Trainings take minutes to months.
DisplayUnit training_unit(double most) {
  constexpr double kMinute = 60.0, kHour = 3600.0, kDay = 86400.0;
  if (most < 2.0 * kMinute) return {1.0, "s"};
  if (most < 2.0 * kHour) return {1.0 / kMinute, "min"};
  if (most < 4.0 * kDay) return {1.0 / kHour, "h"};
  return {1.0 / kDay, "days"};
}

DisplayUnit energy_unit(double most) {
  constexpr double kWattHour = 3600.0;
  if (most < 1000.0 * kWattHour) return {1.0 / kWattHour, "Wh"};
  return {1e-3 / kWattHour, "kWh"};
}

struct Units {
  Effort effort = Effort::energy;
  DisplayUnit time, of_effort;
};

Units units_of(std::span<const Training> trainings, Effort effort, const std::string& currency) {
  double longest = 0.0, most = 0.0;
  for (const Training& one : trainings) {
    longest = std::max(longest, predict::middle_of(one.seconds));
    if (one.of(effort)) most = std::max(most, predict::middle_of(*one.of(effort)));
  }
  return {effort, training_unit(longest),
          effort == Effort::cost ? DisplayUnit{1.0, currency} : energy_unit(most)};
}

Point point_of(const Prediction& row, const Training& training, const Units& units) {
  const predict::Range& effort = *training.of(units.effort);
  const double factor = units.of_effort.factor;
  Point point{.x = predict::middle_of(training.seconds) * units.time.factor,
              .y = predict::middle_of(effort) * factor,
              .low = effort.low * factor,
              .high = effort.high * factor};
  point.detail =
      fmt::format("batch {}, {}; {} to {} {}", row.batch, row.precision,
                  number_text(training.seconds.low * units.time.factor),
                  number_text(training.seconds.high * units.time.factor), units.time.unit);
  if (*training.frontier) point.label = fmt::format("batch {}, {}", row.batch, row.precision);
  return point;
}

std::string end_text(const Prediction& row, const Training& training, const Units& units) {
  const double effort = predict::middle_of(*training.of(units.effort)) * units.of_effort.factor;
  return fmt::format("{}, batch {}, {} ({} {}, {}{}{})", row.target.name, row.batch, row.precision,
                     number_text(predict::middle_of(training.seconds) * units.time.factor),
                     units.time.unit, number_text(effort), units.of_effort.unit.empty() ? "" : " ",
                     units.of_effort.unit);
}

}  // namespace

Figure frontier_figure(std::span<const Prediction> rows, std::span<const Training> trainings,
                       const std::string& currency) {
  const Units units = units_of(trainings, predict::effort_of(rows), currency);
  const bool cost = units.effort == Effort::cost;
  Figure figure{.id = "frontier",
                .title = fmt::format("{} {}: time and {} of {}", rows.front().model,
                                     rows.front().image, predict::name_of(units.effort),
                                     rows.front().inference ? "inference" : "training")};
  figure.x = {.title = "time", .unit = units.time.unit, .logarithmic = true};
  figure.y = {.title = std::string(predict::name_of(units.effort)),
              .unit = units.of_effort.unit,
              .logarithmic = true};
  std::vector<std::size_t> best;
  std::size_t left_out = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!trainings[i].frontier) {
      ++left_out;
      continue;
    }
    series_named(figure, rows[i].target.name, SeriesStyle::points)
        .points.push_back(point_of(rows[i], trainings[i], units));
    if (*trainings[i].frontier) best.push_back(i);
  }
  if (left_out > 0) {
    figure.notes.push_back(
        fmt::format("{} not drawn: the step does not fit into the memory, or {} is not known.",
                    count_words(left_out, "prediction"), cost ? "the price" : "the power"));
  }
  if (best.empty()) return figure;
  std::ranges::sort(best, {}, [&](std::size_t i) { return trainings[i].seconds.low; });
  Series line{.name = cost ? kFrontier : kEnergyFrontier, .style = SeriesStyle::line, .points = {}};
  for (const std::size_t i : best) {
    Point point = point_of(rows[i], trainings[i], units);
    line.points.push_back({.x = point.x, .y = point.y});
  }
  figure.series.push_back(std::move(line));
  const std::size_t first = best.front(), last = best.back();
  figure.reading = fmt::format("The fastest is {}", end_text(rows[first], trainings[first], units));
  figure.reading +=
      first == last
          ? fmt::format(", which also needs the least {}.", cost ? "money" : "energy")
          : fmt::format(", the {} is {}.", cost ? "cheapest" : "one with the least energy",
                        end_text(rows[last], trainings[last], units));
  figure.caption =
      "Predicted; dots are named by batch and precision. Whiskers are ranges that nine of ten "
      "held-back runs stayed within; those of the time are as wide.";
  return figure;
}

}  // namespace ridgeline::report
