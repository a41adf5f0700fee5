#pragma once

// Devices of any maker through OpenCL 1.2.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "devices/device.h"

namespace ridgeline {

// Device `index` of all OpenCL platforms, counted in the loader's order; throws bad_input
// with the reason when it cannot be used.
[[nodiscard]] std::unique_ptr<Device> make_opencl_device(int index);
// What an OpenCL device tells of itself.
struct OpenClInfo {
  std::string name;
  std::string platform;  // name and version
  std::string version;   // the OpenCL that it serves
  std::string driver;
  bool cpu = false;  // computes on the host's cores
  bool fp16 = false, fp64 = false, command_buffers = false;
  int compute_units = 0;
  double clock_mhz = 0.0;  // the highest
  std::int64_t memory_bytes = 0, largest_allocation = 0, local_bytes = 0, cache_bytes = 0;
};
[[nodiscard]] std::vector<OpenClInfo> opencl_devices();
// Why training steps are launched one by one on a device; empty where they are recorded, which is
// tried at the first call.
[[nodiscard]] std::string opencl_recording_refusal(std::size_t index);
// Why no OpenCL device can be used here; empty when one can.
[[nodiscard]] std::string opencl_unavailable();

}  // namespace ridgeline
