#pragma once

// Where CUDA's devices sit: the one name of a graphics processor that CUDA shares with the driver's
// other tools, which count differently.

#include <string>
#include <vector>

namespace ridgeline {

// "0000:3B:00.0" for each device, in CUDA's order; none where CUDA cannot be used.
[[nodiscard]] std::vector<std::string> cuda_bus_ids();

}  // namespace ridgeline
