// How fast and how hot the processors run, and how often heat slowed them.

#include <algorithm>
#include <cctype>

#include "base/folder.h"
#include "measure/telemetry/sensor_file.h"
#include "measure/telemetry/sensors.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;

// Reading a clock may wake its processor: on large machines a few stand for all.
constexpr std::size_t kMostClocks = 16;
constexpr const char* kMhz = "cpu_mhz";
constexpr const char* kTemperature = "cpu_temperature_celsius";
constexpr const char* kThrottled = "cpu_throttle_events";

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> paths;
  for (const std::string& name : names_in(folder, error)) paths.push_back(folder / name);
  return paths;
}

// Folders cpu0, cpu1, …
std::vector<fs::path> processors_of(const fs::path& root) {
  std::vector<fs::path> paths = entries_of(root / "sys/devices/system/cpu");
  std::erase_if(paths, [](const fs::path& path) {
    const std::string name = path.filename().string();
    return !name.starts_with("cpu") || name.size() < 4 ||
           !std::all_of(name.begin() + 3, name.end(),
                        [](unsigned char c) { return std::isdigit(c) != 0; });
  });
  return paths;
}

std::vector<SensorFile> clock_files(const fs::path& root) {
  std::vector<fs::path> found;
  for (const fs::path& processor : processors_of(root)) {
    const fs::path file = processor / "cpufreq/scaling_cur_freq";
    std::error_code error;
    if (fs::exists(file, error)) found.push_back(file);
  }
  std::vector<SensorFile> files;
  const std::size_t stride = (found.size() + kMostClocks - 1) / kMostClocks;
  for (std::size_t i = 0; i < found.size(); i += stride) files.emplace_back(found[i]);
  return files;
}

bool is_processor_chip(const std::string& name) {
  return name == "coretemp" || name == "k10temp" || name == "zenpower" || name == "cpu_thermal" ||
         name == "soc_thermal";
}
bool is_processor_zone(const std::string& type) {
  return type == "x86_pkg_temp" || type.starts_with("cpu") || type == "soc-thermal";
}

// Thermometers of the processors: the monitoring chips, or the thermal zones where there are none.
std::vector<SensorFile> thermometers(const fs::path& root) {
  std::vector<SensorFile> files;
  for (const fs::path& chip : entries_of(root / "sys/class/hwmon")) {
    if (!is_processor_chip(word_of(chip / "name"))) continue;
    for (const fs::path& entry : entries_of(chip)) {
      const std::string name = entry.filename().string();
      if (name.starts_with("temp") && name.ends_with("_input")) files.emplace_back(entry);
    }
  }
  if (!files.empty()) return files;
  for (const fs::path& zone : entries_of(root / "sys/class/thermal")) {
    if (is_processor_zone(word_of(zone / "type"))) files.emplace_back(zone / "temp");
  }
  return files;
}

std::vector<SensorFile> throttle_counters(const fs::path& root) {
  std::vector<SensorFile> files;
  for (const fs::path& processor : processors_of(root)) {
    const fs::path file = processor / "thermal_throttle/core_throttle_count";
    std::error_code error;
    if (fs::exists(file, error)) files.emplace_back(file);
  }
  return files;
}

// All numbers that can be read; the reason why not when there is none.
std::vector<double> numbers_of(std::vector<SensorFile>& files, std::string& reason) {
  std::vector<double> numbers;
  for (SensorFile& file : files) {
    const std::optional<double> number = file.number();
    if (number) numbers.push_back(*number);
    if (!number && reason.empty()) reason = file.reason();
  }
  return numbers;
}

double mean_of(const std::vector<double>& numbers) {
  double sum = 0.0;
  for (const double number : numbers) sum += number;
  return sum / static_cast<double>(numbers.size());
}

class Clocks final : public SensorPart {
 public:
  explicit Clocks(const SystemSensorOptions& options)
      : now_(options.now),
        clocks_(clock_files(options.root)),
        thermometers_(thermometers(options.root)),
        throttles_(throttle_counters(options.root)),
        cpuinfo_(options.root / "proc/cpuinfo") {}

  void read(double now, std::vector<Reading>& into) override {
    if (!cadence_.due(now)) return;
    read_clock(into);
    read_temperature(into);
    read_throttling(into);
    cadence_.done(now, now_());
  }

 private:
  void read_clock(std::vector<Reading>& into) {
    std::string reason;
    std::vector<double> mhz = numbers_of(clocks_, reason);
    for (double& clock : mhz) clock /= 1e3;
    if (mhz.empty()) mhz = clocks_in_cpuinfo(reason);
    give(kMhz, mhz, reason, into, mean_of);
  }
  // A guest system without cpufreq shows the clock here that its host promises.
  std::vector<double> clocks_in_cpuinfo(std::string& reason) {
    std::vector<double> mhz;
    const std::optional<std::string_view> text = cpuinfo_.read();
    if (!text) {
      if (reason.empty()) reason = cpuinfo_.reason();
      return mhz;
    }
    for (std::size_t at = text->find("cpu MHz"); at != std::string_view::npos;
         at = text->find("cpu MHz", at + 1)) {
      const std::size_t colon = text->find(':', at);
      if (colon == std::string_view::npos) break;
      if (const auto clock = leading_number(text->substr(colon + 1))) mhz.push_back(*clock);
    }
    if (mhz.empty() && reason.empty())
      reason = "neither cpufreq nor /proc/cpuinfo reports the clock";
    return mhz;
  }
  void read_temperature(std::vector<Reading>& into) {
    std::string reason;
    std::vector<double> degrees = numbers_of(thermometers_, reason);
    for (double& value : degrees) value /= 1e3;
    if (reason.empty()) {
      reason = "no thermometer of the processor in /sys/class/hwmon or /sys/class/thermal";
    }
    give(kTemperature, degrees, reason, into, [](const std::vector<double>& values) {
      return *std::max_element(values.begin(), values.end());
    });
  }
  void read_throttling(std::vector<Reading>& into) {
    std::string reason;
    const std::vector<double> counts = numbers_of(throttles_, reason);
    if (reason.empty()) reason = "the system does not count thermal throttling of the processors";
    give(kThrottled, counts, reason, into, [](const std::vector<double>& values) {
      return mean_of(values) * static_cast<double>(values.size());
    });
  }
  template <typename Fold>
  void give(const char* sensor, const std::vector<double>& values, const std::string& reason,
            std::vector<Reading>& into, const Fold& fold) {
    if (values.empty()) return missing_.set(sensor, reason);
    missing_.clear(sensor);
    into.push_back({0.0, "cpu", sensor, fold(values)});
  }

  std::function<double()> now_;
  std::vector<SensorFile> clocks_, thermometers_, throttles_;
  SensorFile cpuinfo_;
  Cadence cadence_;
};

}  // namespace

std::unique_ptr<SensorPart> clock_sensors(const SystemSensorOptions& options) {
  return std::make_unique<Clocks>(options);
}

}  // namespace ridgeline
