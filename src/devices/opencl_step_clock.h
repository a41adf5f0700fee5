#pragma once

// Times launches one after another on an OpenCL device, by its own clock.

#include <cstddef>
#include <functional>
#include <vector>

#include "devices/device.h"

namespace ridgeline {

// Runs launches 0 to count - 1 once and waits; the seconds between the ends of each and the one
// before. REQUIRES: an OpenCL device; each has been launched before, so that it is compiled.
[[nodiscard]] std::vector<double> opencl_step_times(Device& device, std::size_t count,
                                                    const std::function<void(std::size_t)>& launch);

}  // namespace ridgeline
