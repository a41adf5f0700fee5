// How busy the processors are, all programs together: /proc/stat.

#include <algorithm>
#include <array>

#include "measure/telemetry/sensor_file.h"
#include "measure/telemetry/sensors.h"

namespace ridgeline {
namespace {

struct Ticks {
  // user, nice, system, idle, iowait, irq, softirq, steal. Guests' time is in user's.
  std::array<double, 8> kinds{};
  int processors = 0;
};
constexpr std::size_t kIdle = 3, kIowait = 4, kSteal = 7;

std::optional<Ticks> parse(std::string_view text) {
  Ticks ticks;
  if (!text.starts_with("cpu ")) return std::nullopt;
  for (std::size_t i = 0; i < ticks.kinds.size(); ++i) {
    const std::optional<double> number = nth_number(text, static_cast<int>(i) + 1);
    if (!number) return std::nullopt;
    ticks.kinds[i] = *number;
  }
  for (std::size_t at = text.find("\ncpu"); at != std::string_view::npos;
       at = text.find("\ncpu", at + 1)) {
    ++ticks.processors;
  }
  return ticks;
}

class Utilisation final : public SensorPart {
 public:
  explicit Utilisation(const std::filesystem::path& root) : file_(root / "proc/stat") {}

  void read(double /*now*/, std::vector<Reading>& into) override {
    const std::optional<std::string_view> text = file_.read();
    const std::optional<Ticks> ticks = text ? parse(*text) : std::nullopt;
    if (!ticks) {
      const std::string reason = text ? "/proc/stat has no line of eight numbers" : file_.reason();
      for (const char* sensor : kSensors) missing_.set(sensor, reason);
      return;
    }
    if (before_) add(*before_, *ticks, into);
    // Between two looks within one tick nothing has passed: the older one stays.
    if (!before_ || ticks->kinds != before_->kinds) before_ = ticks;
  }

 private:
  static constexpr std::array kSensors = {"cpu_utilisation_percent", "iowait_percent",
                                          "steal_percent"};

  static void add(const Ticks& before, const Ticks& now, std::vector<Reading>& into) {
    std::array<double, 8> passed{};
    double total = 0.0;
    for (std::size_t i = 0; i < passed.size(); ++i) {
      // The kernel's idle times may step back a little.
      passed[i] = std::max(0.0, now.kinds[i] - before.kinds[i]);
      total += passed[i];
    }
    if (total <= 0.0) return;
    const double busy = total - passed[kIdle] - passed[kIowait] - passed[kSteal];
    into.push_back({0.0, "cpu", kSensors[0], 100.0 * busy / total});
    into.push_back({0.0, "cpu", kSensors[1], 100.0 * passed[kIowait] / total});
    into.push_back({0.0, "cpu", kSensors[2], 100.0 * passed[kSteal] / total});
    into.push_back({0.0, "cpu", "processors", static_cast<double>(now.processors)});
  }

  SensorFile file_;
  std::optional<Ticks> before_;
};

}  // namespace

std::unique_ptr<SensorPart> utilisation_sensors(const std::filesystem::path& root) {
  return std::make_unique<Utilisation>(root);
}

}  // namespace ridgeline
