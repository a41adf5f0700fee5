#pragma once

// Another clock's time in ours: the tool that watches the device counts nanoseconds from a moment
// of its own, and may run a little faster or slower than the host's steady clock.

#include <cstdint>
#include <span>

namespace ridgeline {

// One reading of the other clock between two of ours. All in nanoseconds.
struct ClockReading {
  std::int64_t before = 0, after = 0;  // ours
  std::uint64_t other = 0;
};

// The one whose own readings lie closest together: it says best when the other clock was read.
// REQUIRES: at least one.
[[nodiscard]] ClockReading tightest(std::span<const ClockReading> readings);

class DeviceClock {
 public:
  // `zero`: our time that counts as 0 seconds. Two readings some time apart give the rate; where
  // they are the same, or out of order, the clocks are taken to run alike.
  DeviceClock(const ClockReading& first, const ClockReading& last, std::int64_t zero);
  [[nodiscard]] double seconds(std::uint64_t other) const;

 private:
  std::uint64_t other_ = 0;    // at the first reading
  double at_ = 0.0;            // seconds since zero, at the first reading
  double seconds_per_ = 1e-9;  // tick of the other clock
};

}  // namespace ridgeline
