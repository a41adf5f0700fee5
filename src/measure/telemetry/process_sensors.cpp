// This process: its processor time, memory, threads and disk.

#include <algorithm>
#include <array>

#include "measure/telemetry/sensor_file.h"
#include "measure/telemetry/sensors.h"

namespace ridgeline {
namespace {

class Process final : public SensorPart {
 public:
  explicit Process(const SystemSensorOptions& options)
      : counters_(options.counters),
        status_(options.root / "proc/self/status"),
        io_(options.root / "proc/self/io") {}

  void read(double now, std::vector<Reading>& into) override {
    read_status(into);
    const ProcessCounters counters = counters_();
    const std::optional<double> disk = bytes_read();
    if (before_ && now > before_at_) {
      const double seconds = now - before_at_;
      const auto rate = [&](const char* sensor, double amount) {
        into.push_back({0.0, "cpu", sensor, amount / seconds});
      };
      rate("process_cpu_percent", 100.0 * (counters.cpu_seconds - before_->cpu_seconds));
      rate("context_switches_per_second", counters.context_switches - before_->context_switches);
      if (disk && disk_before_) rate("disk_read_bytes_per_second", *disk - *disk_before_);
    }
    before_ = counters;
    before_at_ = now;
    disk_before_ = disk;
  }

 private:
  struct Line {
    const char *word, *sensor;
    double unit;
  };
  static constexpr std::array<Line, 3> kLines = {{{"VmRSS:", "rss_bytes", 1024.0},
                                                  {"VmHWM:", "peak_rss_bytes", 1024.0},
                                                  {"Threads:", "threads", 1.0}}};

  void read_status(std::vector<Reading>& into) {
    const std::optional<std::string_view> text = status_.read();
    for (const Line& line : kLines) {
      const std::optional<double> number = text ? number_after(*text, line.word) : std::nullopt;
      if (number) {
        into.push_back({0.0, "cpu", line.sensor, *number * line.unit});
      } else {
        missing_.set(line.sensor,
                     text ? std::string("/proc/self/status does not tell") : status_.reason());
      }
    }
  }
  std::optional<double> bytes_read() {
    const std::optional<std::string_view> text = io_.read();
    const std::optional<double> number = text ? number_after(*text, "read_bytes:") : std::nullopt;
    if (!number) {
      missing_.set("disk_read_bytes_per_second",
                   text ? std::string("/proc/self/io does not tell") : io_.reason());
    }
    return number;
  }

  std::function<ProcessCounters()> counters_;
  SensorFile status_, io_;
  std::optional<ProcessCounters> before_;
  double before_at_ = 0.0;
  std::optional<double> disk_before_;
};

}  // namespace

std::unique_ptr<SensorPart> process_sensors(const SystemSensorOptions& options) {
  return std::make_unique<Process>(options);
}

}  // namespace ridgeline
