// Energy and means from readings.

#include <algorithm>
#include <array>

#include "measure/telemetry/series.h"
#include "measure/telemetry/telemetry.h"

namespace ridgeline {
namespace {

// Readings may begin a little after a time and end a little before the next: so many of their usual
// distances are filled with what the neighbours say.
constexpr double kEdge = 2.5;

constexpr std::array kCounters = {"cpu_energy_joules", "memory_energy_joules", "gpu_energy_joules"};
constexpr const char* kPower = "gpu_power_watts";

bool covers(const SensorSeries& series, double from, double to) {
  if (series.size() < 2) return false;
  const double distance =
      (series.back().at - series.front().at) / static_cast<double>(series.size() - 1);
  return series.front().at - from <= kEdge * distance && to - series.back().at <= kEdge * distance;
}

// The power between the points of a counter. One that falls was started again: nothing is known of
// the time in between, and the mean of the others stands for it.
SensorSeries power_of(const SensorSeries& counter) {
  SensorSeries steps;  // at the end of each step, the watts during it
  std::vector<std::size_t> unknown;
  double joules = 0.0, seconds = 0.0;
  for (std::size_t i = 1; i < counter.size(); ++i) {
    const double step = counter[i].value - counter[i - 1].value;
    const double time = counter[i].at - counter[i - 1].at;
    if (time <= 0.0) continue;
    if (step < 0.0) {
      unknown.push_back(steps.size());
    } else {
      joules += step;
      seconds += time;
    }
    steps.push_back({counter[i].at, step / time});
  }
  if (seconds <= 0.0) return {};
  for (const std::size_t i : unknown) steps[i].value = joules / seconds;
  return steps;
}

// Watts that stay the same from one point to the next, over a time.
double joules_of(const SensorSeries& power, double begin, double from, double to) {
  double joules = 0.0, left = std::min(from, begin);
  for (std::size_t i = 0; i < power.size(); ++i) {
    const double right = i + 1 == power.size() ? std::max(power[i].at, to) : power[i].at;
    joules += power[i].value * std::max(0.0, std::min(to, right) - std::max(from, left));
    left = right;
  }
  return joules;
}

}  // namespace

std::optional<double> energy_between(const std::vector<Reading>& readings,
                                     const std::string& device, double from, double to) {
  if (!(to > from)) return std::nullopt;
  std::optional<double> joules;
  for (const char* sensor : kCounters) {
    const SensorSeries counter = series_of(readings, device, sensor);
    if (!covers(counter, from, to)) continue;
    const SensorSeries power = power_of(counter);
    if (power.empty()) continue;
    joules = joules.value_or(0.0) + joules_of(power, counter.front().at, from, to);
  }
  if (joules) return joules;
  const SensorSeries power = series_of(readings, device, kPower);
  if (!covers(power, from, to)) return std::nullopt;
  return integral(power, from, to);
}

std::vector<SensorSummary> summaries_of(const std::vector<Reading>& readings) {
  const SensorTable table(readings);
  std::vector<SensorSummary> summaries;
  for (const auto& [device, sensor] : table.sensors()) {
    const SensorSeries& series = table.of(device, sensor);
    summaries.push_back({.device = device,
                         .sensor = sensor,
                         .readings = static_cast<std::int64_t>(series.size()),
                         .mean = mean_over_time(series),
                         .min = smallest(series).value,
                         .max = largest(series).value,
                         .first = series.front().value,
                         .last = series.back().value});
  }
  return summaries;
}

}  // namespace ridgeline
