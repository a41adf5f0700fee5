#pragma once

// The processor's own counters (Linux perf_event): instructions, cycles and misses of the last
// cache, of all threads of this process, in user space.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace ridgeline {

// A line of the last cache: each miss brings one from memory. Prefetched lines may not count as
// misses, so that bytes from misses are an estimate.
inline constexpr double kCacheLineBytes = 64.0;

struct CounterValues {
  // Nothing: the processor does not count it, or not for us.
  std::optional<double> instructions, cycles, cache_misses;
};
[[nodiscard]] CounterValues operator-(const CounterValues& after, const CounterValues& before);

class HardwareCounters {
 public:
  // Counts from now on, for the threads that exist now. Throws a failure with the reason where
  // nothing can be counted.
  HardwareCounters();
  HardwareCounters(const HardwareCounters&) = delete;
  HardwareCounters& operator=(const HardwareCounters&) = delete;
  ~HardwareCounters();

  // Since construction.
  [[nodiscard]] CounterValues read() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ridgeline
