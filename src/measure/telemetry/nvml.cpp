#include "measure/telemetry/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "devices/cuda_bus.h"

namespace ridgeline::nvml {
namespace {

template <typename Function>
void find(void* handle, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(dlsym(handle, symbol));
}

Library open_library() {
  Library library;
  void* handle = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    library.unavailable = "no NVIDIA driver was found (libnvidia-ml.so.1 cannot be opened)";
    return library;
  }
  Result (*init)() = nullptr;
  find(handle, "nvmlInit_v2", init);
  find(handle, "nvmlErrorString", library.error_string);
  if (init == nullptr) {
    library.unavailable = "libnvidia-ml.so.1 has no nvmlInit_v2";
    return library;
  }
  // The library stays open and started until the program ends: others may use it, too.
  if (const Result result = init(); result != kSuccess) {
    library.unavailable = fmt::format("NVML does not start: {}", library.words(result));
    return library;
  }
  find(handle, "nvmlSystemGetDriverVersion", library.driver_version);
  find(handle, "nvmlDeviceGetCount_v2", library.device_count);
  find(handle, "nvmlDeviceGetHandleByIndex_v2", library.handle_by_index);
  find(handle, "nvmlDeviceGetHandleByPciBusId_v2", library.handle_by_pci_bus_id);
  find(handle, "nvmlDeviceGetHandleByUUID", library.handle_by_uuid);
  find(handle, "nvmlDeviceGetName", library.name);
  find(handle, "nvmlDeviceGetUtilizationRates", library.utilisation);
  find(handle, "nvmlDeviceGetMemoryInfo", library.memory);
  find(handle, "nvmlDeviceGetMemoryInfo_v2", library.memory_v2);
  // The second version has the same structure; drivers before 510 have it alone.
  find(handle, "nvmlDeviceGetComputeRunningProcesses_v3", library.processes);
  if (library.processes == nullptr) {
    find(handle, "nvmlDeviceGetComputeRunningProcesses_v2", library.processes);
  }
  find(handle, "nvmlDeviceGetClockInfo", library.clock);
  find(handle, "nvmlDeviceGetTemperature", library.temperature);
  find(handle, "nvmlDeviceGetFanSpeed", library.fan_speed);
  find(handle, "nvmlDeviceGetPowerUsage", library.power);
  find(handle, "nvmlDeviceGetEnforcedPowerLimit", library.power_limit);
  find(handle, "nvmlDeviceGetPerformanceState", library.performance_state);
  find(handle, "nvmlDeviceGetTotalEnergyConsumption", library.energy);
  find(handle, "nvmlDeviceGetCurrentClocksEventReasons", library.clock_reasons);
  if (library.clock_reasons == nullptr) {  // its older name
    find(handle, "nvmlDeviceGetCurrentClocksThrottleReasons", library.clock_reasons);
  }
  find(handle, "nvmlDeviceGetEccMode", library.ecc_mode);
  return library;
}

// One entry of $CUDA_VISIBLE_DEVICES: a number or the beginning of a UUID.
NamedDevice device_of_entry(const Library& library, const std::string& entry) {
  NamedDevice device;
  const bool is_number = !entry.empty() && std::all_of(entry.begin(), entry.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
  Result result = kNotSupported;
  if (is_number && library.handle_by_index != nullptr) {
    result =
        library.handle_by_index(static_cast<unsigned>(std::atoi(entry.c_str())), &device.handle);
  } else if (!is_number && library.handle_by_uuid != nullptr) {
    result = library.handle_by_uuid(entry.c_str(), &device.handle);
  }
  if (result != kSuccess) {
    device.handle = nullptr;
    device.unavailable = fmt::format("NVML does not know CUDA_VISIBLE_DEVICES' entry {}: {}", entry,
                                     library.words(result));
  }
  return device;
}

std::vector<std::string> entries_of(std::string_view list) {
  std::vector<std::string> entries;
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    entries.emplace_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return entries;
}

std::vector<NamedDevice> devices_without_cuda(const Library& library, const char* visible) {
  std::vector<NamedDevice> devices;
  if (visible != nullptr) {
    for (const std::string& entry : entries_of(visible)) {
      if (entry.starts_with('-')) break;  // CUDA takes what follows for absent
      devices.push_back(device_of_entry(library, entry));
    }
    return devices;
  }
  unsigned count = 0;
  if (library.device_count == nullptr || library.device_count(&count) != kSuccess) return devices;
  for (unsigned index = 0; index < count; ++index) {
    devices.push_back(device_of_entry(library, std::to_string(index)));
  }
  return devices;
}

}  // namespace

std::string Library::words(Result result) const {
  if (result == kNotSupported) return "not supported by this device";
  if (result == kNoPermission) return "permission denied by the driver";
  if (error_string != nullptr) return error_string(result);
  return fmt::format("error {}", static_cast<int>(result));
}

const Library& library() {
  static const Library kLibrary = open_library();
  return kLibrary;
}

std::vector<NamedDevice> devices_of(const Library& library, const std::vector<std::string>& bus_ids,
                                    const char* visible) {
  if (!library.unavailable.empty()) return {};
  std::vector<NamedDevice> devices;
  for (const std::string& bus_id : bus_ids) {
    NamedDevice device;
    Result result = kNotSupported;
    if (library.handle_by_pci_bus_id != nullptr) {
      result = library.handle_by_pci_bus_id(bus_id.c_str(), &device.handle);
    }
    if (result != kSuccess) {
      device.handle = nullptr;
      device.unavailable =
          fmt::format("NVML does not find the device at {}: {}", bus_id, library.words(result));
    }
    devices.push_back(std::move(device));
  }
  if (bus_ids.empty()) devices = devices_without_cuda(library, visible);
  for (std::size_t i = 0; i < devices.size(); ++i) devices[i].name = fmt::format("cuda:{}", i);
  return devices;
}

std::vector<NamedDevice> devices() {
  if (!library().unavailable.empty()) return {};
  return devices_of(library(), cuda_bus_ids(), std::getenv("CUDA_VISIBLE_DEVICES"));
}

}  // namespace ridgeline::nvml
