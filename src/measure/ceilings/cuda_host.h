#pragma once

// What the host waits for: launches, graphs, synchronisation, copies to and from the device.

#include <vector>

#include "devices/device.h"
#include "store/records.h"

namespace ridgeline::ceilings {

[[nodiscard]] std::vector<Ceiling> launch_latencies(Device& device, int repeats);
[[nodiscard]] std::vector<Ceiling> transfer_rates(Device& device, int repeats);

}  // namespace ridgeline::ceilings
