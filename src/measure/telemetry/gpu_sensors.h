#pragma once

// The graphics processors' sensors over a library that tests can replace, and their memory.

#include <optional>

#include "measure/telemetry/nvml.h"
#include "measure/telemetry/sensors.h"

namespace ridgeline {

// REQUIRES: the library outlives the source. `now` gives seconds.
[[nodiscard]] std::unique_ptr<SensorSource> gpu_sensors(const nvml::Library& library,
                                                        std::vector<nvml::NamedDevice> devices,
                                                        std::function<double()> now);

// "NVIDIA H200, driver 570.86.15, ECC on", as far as the driver tells.
[[nodiscard]] std::string gpu_description(const nvml::Library& library, nvml::Device device);

// Bytes of a graphics processor as its driver counts them; nothing where it does not tell.
struct GpuMemory {
  std::optional<std::int64_t> total;
  std::optional<std::int64_t> used;      // by all programs and the driver
  std::optional<std::int64_t> reserved;  // of that, by driver and firmware
  std::optional<std::int64_t> process;   // of that, by this program
  std::string no_process;                // why `process` is unknown
};
[[nodiscard]] GpuMemory gpu_memory(const nvml::Library& library, nvml::Device device);
// Of "cuda:0" on this machine.
[[nodiscard]] GpuMemory gpu_memory(const std::string& device);

}  // namespace ridgeline
