// The system's memory: what is left of it, what is swapped, who waits for it.

#include <unistd.h>

#include <algorithm>
#include <array>

#include "devices/free_memory.h"
#include "measure/telemetry/sensor_file.h"
#include "measure/telemetry/sensors.h"

namespace ridgeline {
namespace {

constexpr double kKiB = 1024.0;

class Memory final : public SensorPart {
 public:
  explicit Memory(const std::filesystem::path& root)
      : meminfo_(root / "proc/meminfo"),
        vmstat_(root / "proc/vmstat"),
        pressure_(root / "proc/pressure/memory"),
        root_(root) {}

  void read(double now, std::vector<Reading>& into) override {
    read_meminfo(into);
    read_swapping(now, into);
    read_pressure(now, into);
    before_at_ = now;
  }

 private:
  struct Room {
    double available = 0.0, total = 0.0;
  };

  void read_meminfo(std::vector<Reading>& into) {
    const std::optional<std::string_view> text = meminfo_.read();
    if (!text) {
      for (const char* sensor :
           {"memory_available_bytes", "memory_available_percent", "swap_bytes"}) {
        missing_.set(sensor, meminfo_.reason());
      }
      return;
    }
    const auto available = number_after(*text, "MemAvailable:");
    const auto total = number_after(*text, "MemTotal:");
    if (available && total && *total > 0.0) {
      const Room room = within_cgroup({*available * kKiB, *total * kKiB});
      into.push_back({0.0, "cpu", "memory_available_bytes", room.available});
      into.push_back({0.0, "cpu", "memory_available_percent", 100.0 * room.available / room.total});
    } else {
      missing_.set("memory_available_bytes", "/proc/meminfo does not tell");
      missing_.set("memory_available_percent", "/proc/meminfo does not tell");
    }
    const auto swap = number_after(*text, "SwapTotal:"), free = number_after(*text, "SwapFree:");
    if (swap && free) {
      into.push_back({0.0, "cpu", "swap_bytes", (*swap - *free) * kKiB});
    } else {
      missing_.set("swap_bytes", "/proc/meminfo does not tell");
    }
  }
  // A container may have less than the system.
  [[nodiscard]] Room within_cgroup(Room room) const {
    const GroupMemory group = tightest_group(root_);
    const auto limit = static_cast<double>(group.limit);
    if (limit >= room.total) return room;
    return {std::min(room.available, static_cast<double>(group.left)), limit};
  }

  void read_swapping(double now, std::vector<Reading>& into) {
    static const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
    const std::optional<std::string_view> text = vmstat_.read();
    for (Direction& direction : directions_) {
      const auto pages = text ? number_after(*text, direction.word) : std::nullopt;
      if (!pages) {
        missing_.set(direction.sensor,
                     text ? std::string("/proc/vmstat does not tell") : vmstat_.reason());
      } else if (direction.before && now > before_at_) {
        into.push_back({0.0, "cpu", direction.sensor,
                        page * (*pages - *direction.before) / (now - before_at_)});
      }
      direction.before = pages;
    }
  }

  // The share of time in which some program waited for memory.
  void read_pressure(double now, std::vector<Reading>& into) {
    const std::optional<std::string_view> text = pressure_.read();
    const std::size_t at = text ? text->find("total=") : std::string_view::npos;
    std::optional<double> stalled;  // microseconds
    if (at != std::string_view::npos) stalled = leading_number(text->substr(at + 6));
    if (!stalled) {
      missing_.set("memory_pressure_percent",
                   text ? std::string("/proc/pressure/memory does not tell") : pressure_.reason());
    } else if (stalled_before_ && now > before_at_) {
      into.push_back({0.0, "cpu", "memory_pressure_percent",
                      1e-4 * (*stalled - *stalled_before_) / (now - before_at_)});
    }
    stalled_before_ = stalled;
  }

  struct Direction {
    const char *word, *sensor;
    std::optional<double> before;
  };
  std::array<Direction, 2> directions_ = {
      {{"pswpin", "swap_in_bytes_per_second", {}}, {"pswpout", "swap_out_bytes_per_second", {}}}};

  SensorFile meminfo_, vmstat_, pressure_;
  std::filesystem::path root_;
  std::optional<double> stalled_before_;
  double before_at_ = 0.0;
};

}  // namespace

std::unique_ptr<SensorPart> memory_sensors(const std::filesystem::path& root) {
  return std::make_unique<Memory>(root);
}

}  // namespace ridgeline
