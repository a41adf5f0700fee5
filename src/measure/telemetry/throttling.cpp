// Findings about clocks: what slowed them, and whether they fell.

#include <algorithm>
#include <cmath>

#include "analysis/stats/summary.h"
#include "base/error.h"
#include "measure/telemetry/findings.h"
#include "measure/telemetry/nvml.h"

namespace ridgeline {
namespace {

constexpr double kOften = 0.05;        // of the readings: more than a note
constexpr double kClockDrop = 0.05;    // of the clock at the beginning
constexpr double kBusy = 50.0;         // percent: a clock below that says nothing
constexpr std::size_t kFewest = 3;     // readings in a third of the run
constexpr double kSpreadsApart = 2.0;  // a drop is larger than that many spreads of a third
constexpr unsigned long long kThermal = nvml::kThermalSlowdown | nvml::kHardwareThermalSlowdown;
constexpr unsigned long long kPowerLimit = nvml::kPowerCap | nvml::kPowerBrake;

// "; the temperature reached 87 °C", or nothing.
std::string reached(const SensorSeries& series, const char* what, const char* unit) {
  if (series.empty()) return {};
  return fmt::format("; {} reached {:.0f} {}", what, largest(series).value, unit);
}

std::string range_text(const SensorSeries& series, const char* what, const char* unit) {
  if (series.empty()) return {};
  return fmt::format("; {} was between {:.0f} and {:.0f} {}", what, smallest(series).value,
                     largest(series).value, unit);
}

// The readings in which one of the bits is set.
SensorSeries with_bits(const SensorSeries& reasons, unsigned long long bits) {
  SensorSeries set;
  for (const SensorPoint& point : reasons) {
    if ((static_cast<unsigned long long>(point.value) & bits) != 0) set.push_back(point);
  }
  return set;
}

Finding throttling(const std::string& name, const std::string& device, const char* cause,
                   const SensorSeries& set, std::size_t all, const std::string& more) {
  const double share = static_cast<double>(set.size()) / static_cast<double>(all);
  return {name, share >= kOften ? "warning" : "note",
          fmt::format("{}: the driver lowered the clocks because of {} in {} of {} readings "
                      "({:.0f}%), from {:.1f} s to {:.1f} s{}",
                      device, cause, set.size(), all, 100.0 * share, set.front().at, set.back().at,
                      more)};
}

void find_gpu_throttling(const SensorTable& table, const std::string& device,
                         std::vector<Finding>& findings) {
  const SensorSeries& reasons = table.of(device, "gpu_throttle_reasons");
  const std::string clock = range_text(table.of(device, "gpu_sm_mhz"), "the clock", "MHz");
  const SensorSeries heat = with_bits(reasons, kThermal), power = with_bits(reasons, kPowerLimit);
  if (!heat.empty()) {
    const std::string degrees =
        reached(table.of(device, "gpu_temperature_celsius"), "the temperature", "°C");
    findings.push_back(
        throttling("thermal throttling", device, "heat", heat, reasons.size(), degrees + clock));
  }
  if (!power.empty()) {
    std::string watts = reached(table.of(device, "gpu_power_watts"), "the power", "W");
    const SensorSeries& limit = table.of(device, "gpu_power_limit_watts");
    if (!limit.empty()) watts += fmt::format(", its limit is {:.0f} W", limit.back().value);
    findings.push_back(throttling("power throttling", device, "the power limit", power,
                                  reasons.size(), watts + clock));
  }
  // Older drivers tell that the hardware stepped in, and not why.
  const SensorSeries other = with_bits(reasons, nvml::kHardwareSlowdown);
  if (!other.empty() && heat.empty() && power.empty()) {
    findings.push_back(throttling("hardware slowdown", device,
                                  "heat or power (the hardware stepped in)", other, reasons.size(),
                                  clock));
  }
}

void find_cpu_throttling(const SensorTable& table, const std::string& device,
                         std::vector<Finding>& findings) {
  const SensorSeries& events = table.of(device, "cpu_throttle_events");
  if (events.empty() || events.back().value <= events.front().value) return;
  double from = events.front().at, to = events.front().at;
  for (std::size_t i = 1; i < events.size(); ++i) {
    if (events[i].value <= events[i - 1].value) continue;
    if (to == events.front().at) from = events[i - 1].at;
    to = events[i].at;
  }
  findings.push_back(
      {"thermal throttling", "warning",
       fmt::format("{}: the processors counted {:.0f} slow-downs because of heat from {:.1f} s to "
                   "{:.1f} s{}{}",
                   device, events.back().value - events.front().value, from, to,
                   reached(table.of(device, "cpu_temperature_celsius"), "the temperature", "°C"),
                   range_text(table.of(device, "cpu_mhz"), "the clock", "MHz"))});
}

// Of the points whose time lies in a third of the run, while the device was busy.
std::vector<double> busy_values(const SensorSeries& clock, const SensorSeries& busy, double from,
                                double to) {
  std::vector<double> values;
  for (const SensorPoint& point : clock) {
    if (point.at < from || point.at > to) continue;
    if (value_at(busy, point.at) >= kBusy) values.push_back(point.value);
  }
  return values;
}

void find_clock_drop(const SensorTable& table, const std::string& device, const char* sensor,
                     const char* utilisation, std::vector<Finding>& findings) {
  const SensorSeries &clock = table.of(device, sensor), &busy = table.of(device, utilisation);
  if (clock.empty() || busy.empty()) return;
  const double begin = clock.front().at, end = clock.back().at, third = (end - begin) / 3.0;
  const std::vector<double> first = busy_values(clock, busy, begin, begin + third);
  const std::vector<double> last = busy_values(clock, busy, end - third, end);
  if (first.size() < kFewest || last.size() < kFewest) return;
  const Summary before = summarise(first), after = summarise(last);
  const double drop = before.median - after.median;
  if (drop <= kClockDrop * before.median) return;
  if (drop <= kSpreadsApart * std::max(before.mad, after.mad)) return;
  findings.push_back(
      {"clock drop", "warning",
       fmt::format("{}: {} fell by {:.0f}% while the device was busy, from {:.0f} MHz (median from "
                   "{:.1f} s to {:.1f} s) to {:.0f} MHz (from {:.1f} s to {:.1f} s)",
                   device, sensor, 100.0 * drop / before.median, before.median, begin,
                   begin + third, after.median, end - third, end)});
}

}  // namespace

void find_throttling(const SensorTable& table, std::vector<Finding>& findings) {
  for (const std::string& device : table.devices()) {
    find_gpu_throttling(table, device, findings);
    find_cpu_throttling(table, device, findings);
    find_clock_drop(table, device, "cpu_mhz", "cpu_utilisation_percent", findings);
    find_clock_drop(table, device, "gpu_sm_mhz", "gpu_utilisation_percent", findings);
    find_clock_drop(table, device, "gpu_memory_mhz", "gpu_utilisation_percent", findings);
  }
}

}  // namespace ridgeline
