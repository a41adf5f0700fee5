// A table of the sensors of this machine.

#include <chrono>
#include <thread>

#include "base/error.h"
#include "base/text.h"
#include "measure/telemetry/gpu_sensors.h"

namespace ridgeline {
namespace {

constexpr std::chrono::milliseconds kBetween{250};  // readings, for rates

struct Unit {
  std::string_view ending, unit;
};
constexpr Unit kUnits[] = {
    {"_bytes_per_second", "B/s"},
    {"_per_second", "1/s"},
    {"_percent", "%"},
    {"_bytes", "B"},
    {"_mhz", "MHz"},
    {"_celsius", "°C"},
    {"_joules", "J"},
    {"_watts", "W"},
};

std::string value_text(const Reading& reading) {
  if (reading.sensor.ends_with("_bytes")) {
    return bytes_text(static_cast<std::int64_t>(reading.value));
  }
  for (const Unit& unit : kUnits) {
    if (reading.sensor.ends_with(unit.ending)) {
      return fmt::format("{:.1f} {}", reading.value, unit.unit);
    }
  }
  if (reading.sensor == "gpu_throttle_reasons") {
    return fmt::format("0x{:x}", static_cast<unsigned long long>(reading.value));
  }
  return fmt::format("{:.0f}", reading.value);
}

}  // namespace

SensorState read_sensors() {
  const std::unique_ptr<SensorSource> source = all_sensors();
  SensorState state;
  std::vector<Reading> first;
  source->read(first);
  std::this_thread::sleep_for(kBetween);
  source->read(state.readings);
  // Costly sensors are not read twice so soon: what the first reading had stays.
  for (Reading& reading : first) {
    bool again = false;
    for (const Reading& newer : state.readings) {
      again = again || (newer.device == reading.device && newer.sensor == reading.sensor);
    }
    if (!again) state.readings.push_back(std::move(reading));
  }
  state.missing = source->missing();
  for (const nvml::NamedDevice& device : nvml::devices()) {
    if (device.handle == nullptr) continue;
    state.gpus.push_back(
        fmt::format("{}: {}", device.name, gpu_description(nvml::library(), device.handle)));
  }
  return state;
}

std::string sensors_text(const SensorState& state) {
  TextTable table({"device", "sensor", "now", "why not"}, "llrl");
  for (const Reading& reading : state.readings) {
    table.add_row({reading.device, reading.sensor, value_text(reading), ""});
  }
  for (const MissingSensor& sensor : state.missing) {
    table.add_row({sensor.device, sensor.sensor, "n/a", sensor.reason});
  }
  std::string text = table.text();
  for (const std::string& gpu : state.gpus) text += gpu + '\n';
  return text;
}

}  // namespace ridgeline
