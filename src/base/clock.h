#pragma once

// The clock by which everything is timed: it never goes back.

#include <chrono>

namespace ridgeline {

using Clock = std::chrono::steady_clock;

[[nodiscard]] inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace ridgeline
