// Processes that this one has started, and theirs: the workers of peers, above all.

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "base/folder.h"
#include "measure/telemetry/sensor_file.h"
#include "measure/telemetry/sensors.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;

struct ProcessStat {
  int parent = 0;
  double cpu_seconds = 0.0, rss_bytes = 0.0;
};

// "12 (name) S 1 …": the name may have blanks and brackets in it, so that the numbers begin after
// the last bracket.
std::optional<ProcessStat> parse_stat(std::string_view text) {
  static const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  static const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
  const std::size_t bracket = text.rfind(')');
  if (bracket == std::string_view::npos) return std::nullopt;
  text = text.substr(bracket + 1);  // state, parent, …
  const auto parent = nth_number(text, 1), user = nth_number(text, 11),
             kernel = nth_number(text, 12), pages = nth_number(text, 21);
  if (!parent || !user || !kernel || !pages) return std::nullopt;
  return ProcessStat{static_cast<int>(*parent), (*user + *kernel) / ticks, *pages * page};
}

std::optional<ProcessStat> stat_of(const fs::path& proc, int process) {
  SensorFile file(proc / std::to_string(process) / "stat");
  const std::optional<std::string_view> text = file.read();
  return text ? parse_stat(*text) : std::nullopt;
}

class Children final : public SensorPart {
 public:
  explicit Children(const SystemSensorOptions& options)
      : now_(options.now), proc_(options.root / "proc") {}

  void read(double now, std::vector<Reading>& into) override {
    if (cadence_.due(now)) {
      look_for_new();
      cadence_.done(now, now_());
    }
    double cpu = 0.0, rss = 0.0;
    int alive = 0;
    for (auto& [process, child] : known_) {
      if (!child.ours) continue;
      const std::optional<ProcessStat> stat = stat_of(proc_, process);
      if (!stat) continue;  // it has ended; the next look forgets it
      ++alive;
      rss += stat->rss_bytes;
      // What a new child has used before it was seen counts in the time since the last reading.
      cpu += std::max(0.0, stat->cpu_seconds - child.cpu_seconds);
      child.cpu_seconds = stat->cpu_seconds;
    }
    into.push_back({0.0, "cpu", "processes", 1.0 + alive});
    into.push_back({0.0, "cpu", "children_rss_bytes", rss});
    if (before_at_ && now > *before_at_) {
      into.push_back({0.0, "cpu", "children_cpu_percent", 100.0 * cpu / (now - *before_at_)});
    }
    before_at_ = now;
  }

 private:
  struct Known {
    int parent = 0;
    bool ours = false;
    bool seen = false;
    double cpu_seconds = 0.0;
  };

  void look_for_new() {
    const auto self = static_cast<int>(leading_number(word_of(proc_ / "self/stat")).value_or(0.0));
    for (auto& [process, known] : known_) known.seen = false;
    std::error_code error;
    for (const std::string& name : names_in(proc_, error)) {
      if (std::isdigit(static_cast<unsigned char>(name[0])) == 0) continue;
      const int process = std::atoi(name.c_str());
      Known& known = known_[process];
      known.seen = true;
      // A process keeps its parent while that lives: it is enough to ask once.
      if (known.parent != 0 || process == self) continue;
      const std::optional<ProcessStat> stat = stat_of(proc_, process);
      if (stat) known.parent = std::max(1, stat->parent);
    }
    std::erase_if(known_, [](const auto& entry) { return !entry.second.seen; });
    mark_descendants(self);
  }
  void mark_descendants(int self) {
    for (bool changed = true; changed;) {
      changed = false;
      for (auto& [process, known] : known_) {
        if (known.ours) continue;
        const auto parent = known_.find(known.parent);
        known.ours = known.parent == self || (parent != known_.end() && parent->second.ours);
        changed = changed || known.ours;
      }
    }
  }

  std::function<double()> now_;
  fs::path proc_;
  std::map<int, Known> known_;
  Cadence cadence_;
  std::optional<double> before_at_;
};

}  // namespace

std::unique_ptr<SensorPart> children_sensors(const SystemSensorOptions& options) {
  return std::make_unique<Children>(options);
}

}  // namespace ridgeline
