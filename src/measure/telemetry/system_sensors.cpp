// The sensors of the system put together.

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "measure/telemetry/sensors.h"

namespace ridgeline {
namespace {

constexpr double kPeriod = 1.0;         // of costly readings, in seconds
constexpr double kLeastPauses = 200.0;  // times the cost of a reading

std::optional<double> value_in(const std::vector<Reading>& readings, std::size_t begin,
                               const char* sensor) {
  for (std::size_t i = begin; i < readings.size(); ++i) {
    if (readings[i].sensor == sensor) return readings[i].value;
  }
  return std::nullopt;
}

class SystemSensors final : public SensorSource {
 public:
  explicit SystemSensors(const SystemSensorOptions& options) : now_(options.now) {
    parts_.push_back(utilisation_sensors(options.root));
    parts_.push_back(clock_sensors(options));
    parts_.push_back(energy_sensors(options.root));
    parts_.push_back(process_sensors(options));
    parts_.push_back(children_sensors(options));
    parts_.push_back(memory_sensors(options.root));
  }

  void read(std::vector<Reading>& into) override {
    const std::size_t begin = into.size();
    for (const auto& part : parts_) part->read(now_(), into);
    add_other_programs(into, begin);
  }
  [[nodiscard]] std::vector<MissingSensor> missing() const override {
    std::vector<MissingSensor> all;
    for (const auto& part : parts_) {
      all.insert(all.end(), part->missing().begin(), part->missing().end());
    }
    return all;
  }

 private:
  // The system's use of the processors less our own. Its ticks are coarse: single readings may
  // come out a little below zero, and only their mean says something.
  static void add_other_programs(std::vector<Reading>& into, std::size_t begin) {
    const auto all = value_in(into, begin, "cpu_utilisation_percent");
    const auto processors = value_in(into, begin, "processors");
    const auto own = value_in(into, begin, "process_cpu_percent");
    const auto children = value_in(into, begin, "children_cpu_percent");
    // Their number does not change: it is no reading of its own.
    std::erase_if(into, [](const Reading& reading) { return reading.sensor == "processors"; });
    if (!all || !processors || !own || !children) return;
    into.push_back(
        {0.0, "cpu", "other_cpu_percent", std::max(0.0, *all * *processors - *own - *children)});
  }

  std::function<double()> now_;
  std::vector<std::unique_ptr<SensorPart>> parts_;
};

}  // namespace

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void MissingSensors::set(const std::string& sensor, const std::string& reason) {
  for (MissingSensor& known : list_) {
    if (known.sensor != sensor) continue;
    known.reason = reason;
    return;
  }
  list_.push_back({device_, sensor, reason});
}

void MissingSensors::clear(const std::string& sensor) {
  std::erase_if(list_, [&](const MissingSensor& known) { return known.sensor == sensor; });
}

void Cadence::done(double began, double ended) {
  next_ = began + std::max(kPeriod, kLeastPauses * (ended - began));
}

ProcessCounters own_counters() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return {seconds(usage.ru_utime) + seconds(usage.ru_stime),
          static_cast<double>(usage.ru_nvcsw + usage.ru_nivcsw)};
}

std::unique_ptr<SensorSource> system_sensors(const SystemSensorOptions& options) {
  SystemSensorOptions complete = options;
  if (!complete.now) complete.now = steady_seconds;
  if (!complete.counters) complete.counters = own_counters;
  return std::make_unique<SystemSensors>(complete);
}

std::unique_ptr<SensorSource> system_sensors() { return system_sensors(SystemSensorOptions{}); }

}  // namespace ridgeline
