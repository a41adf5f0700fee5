// What the processors and the memory have used, by the counters of /sys/class/powercap (RAPL).

#include <algorithm>

#include "base/folder.h"
#include "measure/telemetry/sensor_file.h"
#include "measure/telemetry/sensors.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;

// A counter of microjoules that starts again at zero when it is full.
struct Counter {
  SensorFile file;
  double range = 0.0;
  std::optional<double> before;
  double joules = 0.0;  // since the first reading
};

// Adds up counters that stand for one sensor.
class EnergyMeter {
 public:
  explicit EnergyMeter(std::string sensor) : sensor_(std::move(sensor)) {}

  void add(const fs::path& zone) {
    counters_.push_back({.file = SensorFile(zone / "energy_uj"),
                         .range = SensorFile(zone / "max_energy_range_uj").number().value_or(0.0),
                         .before = std::nullopt});
  }
  void read(std::vector<Reading>& into, MissingSensors& missing, const std::string& none) {
    if (counters_.empty()) return missing.set(sensor_, none);
    double joules = 0.0;
    for (Counter& counter : counters_) {
      const std::optional<double> now = counter.file.number();
      // One package without a number would make the sum of all too small: better none.
      if (!now) return missing.set(sensor_, counter.file.reason());
      double step = counter.before ? *now - *counter.before : 0.0;
      if (step < 0.0) step += counter.range;
      counter.joules += 1e-6 * std::max(0.0, step);
      counter.before = now;
      joules += counter.joules;
    }
    into.push_back({0.0, "cpu", sensor_, joules});
  }

 private:
  std::string sensor_;
  std::vector<Counter> counters_;
};

class Energy final : public SensorPart {
 public:
  explicit Energy(const fs::path& root) {
    std::error_code error;
    const fs::path zones = root / "sys/class/powercap";
    for (const std::string& zone : names_in(zones, error)) {
      // The same counters are offered a second time through memory-mapped registers.
      if (zone.starts_with("intel-rapl-mmio")) continue;
      const std::string name = word_of(zones / zone / "name");
      if (name.starts_with("package")) processors_.add(zones / zone);
      if (name == "dram") memory_.add(zones / zone);
    }
  }

  void read(double /*now*/, std::vector<Reading>& into) override {
    processors_.read(into, missing_, "no energy counter in /sys/class/powercap");
    memory_.read(into, missing_, "no energy counter of the memory in /sys/class/powercap");
  }

 private:
  EnergyMeter processors_{"cpu_energy_joules"}, memory_{"memory_energy_joules"};
};

}  // namespace

std::unique_ptr<SensorPart> energy_sensors(const fs::path& root) {
  return std::make_unique<Energy>(root);
}

}  // namespace ridgeline
