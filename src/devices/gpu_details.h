#pragma once

// What a graphics processor tells of itself that no computation needs to know, but that explains
// its speed.

#include <optional>

namespace ridgeline {

struct GpuDetails {
  std::optional<bool> ecc;           // its memory corrects errors, which costs bandwidth
  std::optional<double> memory_mhz;  // the highest clock
  std::optional<int> memory_bus_bits;
};
// Of "cuda:INDEX".
[[nodiscard]] GpuDetails gpu_details(int index);

}  // namespace ridgeline
