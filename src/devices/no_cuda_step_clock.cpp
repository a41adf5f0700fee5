// What stands for the clock of a graphics processor in a build without CUDA.

#include "base/error.h"
#include "devices/step_clock.h"

namespace ridgeline {

struct StepClock::Events {};

StepClock::StepClock(Device& device, std::size_t /*count*/,
                     std::function<void(std::size_t)> /*launch*/, bool /*capturable*/) {
  fail("{} has no clock of its own in this build", device.name());
}

StepClock::~StepClock() = default;

std::vector<double> StepClock::pass() { return {}; }

}  // namespace ridgeline
