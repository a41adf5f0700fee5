#pragma once

// Times launches one after another on a graphics processor, without the host between them.

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "devices/device.h"

namespace ridgeline {

// Where all launches can be recorded, events stand between them in one recording that is replayed:
// the processor goes from launch to event to launch by itself. What two events in a row cost is
// measured once and taken off. Otherwise events are queued between plain launches, and a launch
// shorter than the host needs to queue the next is timed too long.
class StepClock {
 public:
  // REQUIRES: a CUDA device; what `launch` refers to outlives the clock; each has been launched
  // before, so that libraries are set up.
  StepClock(Device& device, std::size_t count, std::function<void(std::size_t)> launch,
            bool capturable);
  StepClock(const StepClock&) = delete;
  StepClock& operator=(const StepClock&) = delete;
  ~StepClock();

  // Runs all launches once and waits; the seconds of each by the device's clock.
  [[nodiscard]] std::vector<double> pass();

 private:
  struct Events;
  std::unique_ptr<Events> events_;
};

}  // namespace ridgeline
