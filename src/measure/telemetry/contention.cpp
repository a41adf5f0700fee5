// Findings about what a run shares with others or has too little of: memory and processors.

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "measure/telemetry/findings.h"
#include "measure/telemetry/telemetry.h"

namespace ridgeline {
namespace {

constexpr double kLeastAvailable = 5.0;  // percent of the memory
constexpr double kPressure = 1.0;        // percent of the time that programs waited for memory
constexpr double kNearCapacity = 95.0;   // percent of a graphics processor's memory
constexpr double kSwapped = 1048576.0;   // bytes: less may be the past of a program long asleep
constexpr double kMuchSteal = 2.0;       // percent of all processors' time
constexpr double kOthers = 5.0;          // percent of all processors' time
constexpr double kFull = 85.0;           // percent: others then take what the run could use

std::string size_text(double bytes) { return bytes_text(static_cast<std::int64_t>(bytes)); }

void find_memory_pressure(const SensorTable& table, const std::string& device,
                          std::vector<Finding>& findings) {
  const SensorSeries& share = table.of(device, "memory_available_percent");
  if (!share.empty() && smallest(share).value < kLeastAvailable) {
    const SensorPoint least = smallest(share);
    const SensorSeries& bytes = table.of(device, "memory_available_bytes");
    const std::string size =
        bytes.empty() ? std::string() : fmt::format(" ({})", size_text(value_at(bytes, least.at)));
    findings.push_back({"memory pressure", "warning",
                        fmt::format("{}: only {:.1f}% of the memory{} was left at {:.1f} s", device,
                                    least.value, size, least.at)});
  }
  const SensorSeries& waits = table.of(device, "memory_pressure_percent");
  if (!waits.empty() && mean_over_time(waits) > kPressure) {
    const SensorPoint most = largest(waits);
    findings.push_back({"memory pressure", "warning",
                        fmt::format("{}: programs waited for memory during {:.1f}% of the time, at "
                                    "most {:.0f}% at {:.1f} s",
                                    device, mean_over_time(waits), most.value, most.at)});
  }
  const SensorSeries& occupied = table.of(device, "gpu_memory_occupied_percent");
  if (!occupied.empty() && largest(occupied).value >= kNearCapacity) {
    const SensorPoint most = largest(occupied);
    const SensorSeries& bytes = table.of(device, "gpu_memory_used_bytes");
    const std::string size =
        bytes.empty() ? std::string() : fmt::format(", {},", size_text(value_at(bytes, most.at)));
    findings.push_back({"memory pressure", "warning",
                        fmt::format("{}: {:.1f}% of the device's memory{} was taken at {:.1f} s; "
                                    "near its capacity speed can collapse",
                                    device, most.value, size, most.at)});
  }
}

void find_swapping(const SensorTable& table, const std::string& device,
                   std::vector<Finding>& findings) {
  const SensorSeries& in = table.of(device, "swap_in_bytes_per_second");
  const SensorSeries& out = table.of(device, "swap_out_bytes_per_second");
  const auto total = [](const SensorSeries& rate) {
    return rate.size() < 2 ? 0.0 : integral(rate, rate.front().at, rate.back().at);
  };
  if (total(in) + total(out) < kSwapped) return;
  const SensorSeries& busier = total(in) > total(out) ? in : out;
  const SensorPoint most = largest(busier);
  findings.push_back({"swapping", "warning",
                      fmt::format("{}: {} were read from swap and {} written to it; at most {} a "
                                  "second at {:.1f} s",
                                  device, size_text(total(in)), size_text(total(out)),
                                  size_text(most.value), most.at)});
}

void find_neighbours(const SensorTable& table, const std::string& device,
                     std::vector<Finding>& findings) {
  const SensorSeries& steal = table.of(device, "steal_percent");
  if (!steal.empty() && mean_over_time(steal) > kMuchSteal) {
    const SensorPoint most = largest(steal);
    findings.push_back({"noisy neighbour", "warning",
                        fmt::format("{}: the host gave {:.1f}% of the processors' time to others "
                                    "(steal), at most {:.0f}% at {:.1f} s",
                                    device, mean_over_time(steal), most.value, most.at)});
  }
  const SensorSeries& others = table.of(device, "other_cpu_percent");
  const SensorSeries& all = table.of(device, "cpu_utilisation_percent");
  const SensorSeries& own = table.of(device, "process_cpu_percent");
  if (others.empty() || all.empty() || own.empty()) return;
  const double busy = mean_over_time(all), other = mean_over_time(others);
  const SensorSeries& children = table.of(device, "children_cpu_percent");
  const double ours = mean_over_time(own) + (children.empty() ? 0.0 : mean_over_time(children));
  // All use of the processors is ours and theirs: what part of all processors' time is theirs?
  const double share = other + ours > 0.0 ? busy * other / (other + ours) : 0.0;
  if (share <= kOthers) return;
  const SensorPoint most = largest(others);
  findings.push_back(
      {"noisy neighbour", busy >= kFull ? "warning" : "note",
       fmt::format("{}: other programs of this system used {:.1f} processors on average, at most "
                   "{:.1f} at {:.1f} s, this one {:.1f}; all processors were {:.0f}% busy",
                   device, other / 100.0, most.value / 100.0, most.at, ours / 100.0, busy)});
}

}  // namespace

void find_contention(const SensorTable& table, std::vector<Finding>& findings) {
  for (const std::string& device : table.devices()) {
    find_memory_pressure(table, device, findings);
    find_swapping(table, device, findings);
    find_neighbours(table, device, findings);
  }
}

std::vector<Finding> findings_of(const std::vector<Reading>& readings) {
  const SensorTable table(readings);
  std::vector<Finding> findings;
  find_throttling(table, findings);
  find_contention(table, findings);
  return findings;
}

}  // namespace ridgeline
