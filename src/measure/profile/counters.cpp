#include "measure/profile/counters.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/error.h"
#include "base/folder.h"

namespace ridgeline {
namespace {

constexpr std::array<std::uint64_t, 3> kEvents = {
    PERF_COUNT_HW_INSTRUCTIONS, PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_HW_CACHE_MISSES};

int open_counter(std::uint64_t event, pid_t thread) {
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_HARDWARE;
  attributes.size = sizeof(attributes);
  attributes.config = event;
  // Without rights of an administrator only user space may be counted.
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  return static_cast<int>(syscall(SYS_perf_event_open, &attributes, thread, -1, -1, 0));
}

std::string refusal(int error) {
  switch (error) {
    case EACCES:
    case EPERM: {
      std::string level = "n/a";
      std::ifstream("/proc/sys/kernel/perf_event_paranoid") >> level;
      return fmt::format(
          "perf_event_open is not permitted (kernel.perf_event_paranoid is {}, and 2 or less is "
          "needed; a container may forbid it as well)",
          level);
    }
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP:
      return "this machine offers no hardware counters (virtual machines often hide them)";
    case ENOSYS:
      return "this kernel has no perf_event_open";
    default:
      return fmt::format("perf_event_open: {}", std::strerror(error));
  }
}

std::vector<pid_t> own_threads() {
  std::vector<pid_t> threads;
  std::error_code ignored;
  for (const std::string& name : names_in("/proc/self/task", ignored)) {
    threads.push_back(static_cast<pid_t>(std::stol(name)));
  }
  return threads;
}

std::optional<double> difference(const std::optional<double>& after,
                                 const std::optional<double>& before) {
  return after && before ? std::optional(*after - *before) : std::nullopt;
}

}  // namespace

CounterValues operator-(const CounterValues& after, const CounterValues& before) {
  return {difference(after.instructions, before.instructions),
          difference(after.cycles, before.cycles),
          difference(after.cache_misses, before.cache_misses)};
}

struct HardwareCounters::State {
  // For each kind of event one counter a thread; empty: cannot be counted.
  std::array<std::vector<int>, kEvents.size()> counters;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    for (const auto& of_event : counters) {
      for (const int counter : of_event) (void)close(counter);
    }
  }

  // Of all threads; scaled up where the processor had to take turns with other events.
  [[nodiscard]] std::optional<double> total(std::size_t event) const {
    if (counters[event].empty()) return std::nullopt;
    double sum = 0.0;
    for (const int counter : counters[event]) {
      struct {
        std::uint64_t value, enabled, running;
      } values{};
      if (::read(counter, &values, sizeof(values)) != sizeof(values)) return std::nullopt;
      if (values.running == 0) continue;  // the thread slept all the time
      sum += static_cast<double>(values.value) * static_cast<double>(values.enabled) /
             static_cast<double>(values.running);
    }
    return sum;
  }
};

HardwareCounters::HardwareCounters() : state_(std::make_unique<State>()) {
  int first_error = 0;
  bool any = false;
  for (std::size_t event = 0; event < kEvents.size(); ++event) {
    std::vector<int>& counters = state_->counters[event];
    for (const pid_t thread : own_threads()) {
      const int counter = open_counter(kEvents[event], thread);
      if (counter < 0 && errno == ESRCH) continue;  // a thread that has just ended
      if (counter < 0) {
        if (first_error == 0) first_error = errno;
        for (const int opened : counters) (void)close(opened);
        counters.clear();
        break;
      }
      counters.push_back(counter);
    }
    any = any || !counters.empty();
  }
  if (!any) fail("{}", refusal(first_error));
}

HardwareCounters::~HardwareCounters() = default;

CounterValues HardwareCounters::read() const {
  return {state_->total(0), state_->total(1), state_->total(2)};
}

}  // namespace ridgeline
