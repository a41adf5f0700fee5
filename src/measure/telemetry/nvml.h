#pragma once

// NVIDIA's management library, opened at run time: machines without a driver lack it, and no header
// of it is needed. Names and layouts follow its documented C interface; here they stand without the
// prefix nvml.

#include <string>
#include <vector>

namespace ridgeline::nvml {

using Device = struct OpaqueDevice*;

// Results that mean something to us; there are others.
enum Result : int {
  kSuccess = 0,
  kNotSupported = 3,
  kNoPermission = 4,
  kNotFound = 6,
  kInsufficientSize = 7,
};

struct Utilisation {
  unsigned gpu, memory;  // percent of the time in which kernels ran, in which memory was accessed
};
struct Memory {
  unsigned long long total, free, used;
};
struct MemoryV2 {
  unsigned version;  // kMemoryV2
  unsigned long long total, reserved, free, used;
};
inline constexpr unsigned kMemoryV2 = sizeof(MemoryV2) | (2U << 24);
struct ProcessInfo {
  unsigned process;
  unsigned long long memory;  // kNotAvailable where the driver does not tell
  unsigned gpu_instance, compute_instance;
};
inline constexpr unsigned long long kNotAvailable = ~0ULL;

enum ClockType : int { kSmClock = 1, kMemoryClock = 2 };
enum TemperatureSensor : int { kGpuTemperature = 0 };

// Why the clocks are not higher: bits of gpu_throttle_reasons.
inline constexpr unsigned long long kPowerCap = 0x4, kHardwareSlowdown = 0x8,
                                    kThermalSlowdown = 0x20, kHardwareThermalSlowdown = 0x40,
                                    kPowerBrake = 0x80;

// The library's functions; null for those that the installed driver does not have. Tests put their
// own in.
struct Library {
  std::string unavailable;  // why it cannot be used at all; empty when it can
  const char* (*error_string)(Result) = nullptr;
  Result (*driver_version)(char*, unsigned) = nullptr;
  Result (*device_count)(unsigned*) = nullptr;
  Result (*handle_by_index)(unsigned, Device*) = nullptr;
  Result (*handle_by_pci_bus_id)(const char*, Device*) = nullptr;
  Result (*handle_by_uuid)(const char*, Device*) = nullptr;
  Result (*name)(Device, char*, unsigned) = nullptr;
  Result (*utilisation)(Device, Utilisation*) = nullptr;
  Result (*memory)(Device, Memory*) = nullptr;
  Result (*memory_v2)(Device, MemoryV2*) = nullptr;
  Result (*processes)(Device, unsigned*, ProcessInfo*) = nullptr;
  Result (*clock)(Device, ClockType, unsigned*) = nullptr;  // MHz
  Result (*temperature)(Device, TemperatureSensor, unsigned*) = nullptr;
  Result (*fan_speed)(Device, unsigned*) = nullptr;
  Result (*power)(Device, unsigned*) = nullptr;        // milliwatts
  Result (*power_limit)(Device, unsigned*) = nullptr;  // milliwatts
  Result (*performance_state)(Device, int*) = nullptr;
  Result (*energy)(Device, unsigned long long*) = nullptr;  // millijoules since the driver began
  Result (*clock_reasons)(Device, unsigned long long*) = nullptr;
  Result (*ecc_mode)(Device, unsigned* current, unsigned* pending) = nullptr;

  // In words: "not supported by this device".
  [[nodiscard]] std::string words(Result result) const;
};

// The installed one; opened and started once.
[[nodiscard]] const Library& library();

// A graphics processor under the name that Ridgeline gives it.
struct NamedDevice {
  std::string name;  // "cuda:0"
  Device handle = nullptr;
  std::string unavailable;  // why it has no handle
};
// The processors that CUDA shows to this program, in CUDA's order. `bus_ids` are those of CUDA's
// devices; where CUDA cannot be asked (it is empty) NVML's own order and the entries of `visible`
// ($CUDA_VISIBLE_DEVICES; null: all) take their place.
[[nodiscard]] std::vector<NamedDevice> devices_of(const Library& library,
                                                  const std::vector<std::string>& bus_ids,
                                                  const char* visible);
// The same for this machine.
[[nodiscard]] std::vector<NamedDevice> devices();

}  // namespace ridgeline::nvml
