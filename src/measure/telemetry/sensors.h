#pragma once

// The parts of the system's sensors. Each reads files below a root folder, so that tests can make
// a /proc and a /sys of their own, and gets the time from outside.

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "measure/telemetry/telemetry.h"

namespace ridgeline {

// Why sensors of one device cannot be read; one reason a sensor.
class MissingSensors {
 public:
  explicit MissingSensors(std::string device) : device_(std::move(device)) {}
  void set(const std::string& sensor, const std::string& reason);
  void clear(const std::string& sensor);
  [[nodiscard]] const std::vector<MissingSensor>& list() const { return list_; }

 private:
  std::string device_;
  std::vector<MissingSensor> list_;
};

// When a costly reading is due: once a second, or as seldom as it takes to stay below half a
// percent of a core.
class Cadence {
 public:
  [[nodiscard]] bool due(double now) const { return now >= next_; }
  void done(double began, double ended);

 private:
  double next_ = -1e300;
};

// Sensors of the cpu.
class SensorPart {
 public:
  virtual ~SensorPart() = default;
  virtual void read(double now, std::vector<Reading>& into) = 0;
  [[nodiscard]] const std::vector<MissingSensor>& missing() const { return missing_.list(); }

 protected:
  MissingSensors missing_{"cpu"};
};

// What the system counts of this process, all threads.
struct ProcessCounters {
  double cpu_seconds = 0.0;
  double context_switches = 0.0;
};
[[nodiscard]] ProcessCounters own_counters();

// By the steady clock.
[[nodiscard]] double steady_seconds();

struct SystemSensorOptions {
  std::filesystem::path root = "/";
  std::function<double()> now = {};                // seconds; nothing: the steady clock
  std::function<ProcessCounters()> counters = {};  // nothing: own_counters
};

// cpu_utilisation_percent, iowait_percent, steal_percent (of all processors).
[[nodiscard]] std::unique_ptr<SensorPart> utilisation_sensors(const std::filesystem::path& root);
// cpu_mhz, cpu_temperature_celsius, cpu_throttle_events.
[[nodiscard]] std::unique_ptr<SensorPart> clock_sensors(const SystemSensorOptions& options);
// cpu_energy_joules, memory_energy_joules: since the first reading.
[[nodiscard]] std::unique_ptr<SensorPart> energy_sensors(const std::filesystem::path& root);
// process_cpu_percent, context_switches_per_second, rss_bytes, peak_rss_bytes, threads,
// disk_read_bytes_per_second.
[[nodiscard]] std::unique_ptr<SensorPart> process_sensors(const SystemSensorOptions& options);
// processes (this one and its descendants), children_cpu_percent, children_rss_bytes.
[[nodiscard]] std::unique_ptr<SensorPart> children_sensors(const SystemSensorOptions& options);
// memory_available_bytes, memory_available_percent, swap_bytes, swap_in_bytes_per_second,
// swap_out_bytes_per_second, memory_pressure_percent.
[[nodiscard]] std::unique_ptr<SensorPart> memory_sensors(const std::filesystem::path& root);

// All of them, and other_cpu_percent: what programs other than this one and its children used.
[[nodiscard]] std::unique_ptr<SensorSource> system_sensors(const SystemSensorOptions& options);

}  // namespace ridgeline
