#pragma once

// Libraries keep their threads spinning after the work is done, some for tenths of a second, and
// take the processors from the next one. A turn begins when that has ended.

#include <functional>

namespace ridgeline {

struct QuietClocks {
  std::function<double()> now;        // seconds
  std::function<void(double)> sleep;  // for so many seconds
  // Processor time that all who had turns have used so far, in seconds.
  std::function<double()> used;
};

inline constexpr double kQuietWindow = 0.002;  // seconds that are looked at
inline constexpr double kQuietShare = 0.3;     // of one core: less than one spinning thread
inline constexpr double kLongestWait = 0.5;

// Sleeps until less than kQuietShare of a core was in use during one window, or the longest wait is
// over. Whether it became quiet.
bool wait_until_quiet(const QuietClocks& clocks);
// By the clock of the machine.
bool wait_until_quiet(const std::function<double()>& used);

}  // namespace ridgeline
