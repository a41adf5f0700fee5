// Graphics processors through NVML.

#include "measure/telemetry/gpu_sensors.h"

#include <unistd.h>

#include <array>

#include "base/error.h"

namespace ridgeline {
namespace {

using nvml::Library;
using nvml::Result;

std::string lacks(const char* function) {
  return fmt::format("the installed driver has no {}", function);
}

struct ProcessMemory {
  std::optional<std::int64_t> bytes;
  std::string reason;
};

// Of this program. The driver knows processes by the numbers of the host: in a container with
// numbers of its own it cannot be found.
ProcessMemory process_memory(const Library& library, nvml::Device device) {
  if (library.processes == nullptr) {
    return {{}, lacks("nvmlDeviceGetComputeRunningProcesses")};
  }
  std::vector<nvml::ProcessInfo> processes(16);
  auto count = static_cast<unsigned>(processes.size());
  Result result = library.processes(device, &count, processes.data());
  if (result == nvml::kInsufficientSize) {
    processes.resize(count + 16);
    count = static_cast<unsigned>(processes.size());
    result = library.processes(device, &count, processes.data());
  }
  if (result != nvml::kSuccess) return {{}, library.words(result)};
  for (unsigned i = 0; i < count; ++i) {
    if (processes[i].process != static_cast<unsigned>(getpid())) continue;
    if (processes[i].memory == nvml::kNotAvailable) {
      return {{}, "the driver does not tell the memory of single processes"};
    }
    return {static_cast<std::int64_t>(processes[i].memory), {}};
  }
  return {{},
          fmt::format("the driver lists {} processes and not this one, which has not used the "
                      "device yet or runs in a container with process numbers of its own",
                      count)};
}

class Gpu {
 public:
  Gpu(const Library& library, nvml::NamedDevice device)
      : library_(library), name_(std::move(device.name)), device_(device.handle), missing_(name_) {
    if (device_ == nullptr) missing_.set("gpu", device.unavailable);
  }

  void read(bool costly, std::vector<Reading>& into) {
    if (device_ == nullptr) return;
    read_utilisation(into);
    read_memory(into);
    read_number<unsigned>("gpu_power_watts", "nvmlDeviceGetPowerUsage", library_.power, 1e-3, into);
    if (costly) {
      read_number<unsigned>("gpu_power_limit_watts", "nvmlDeviceGetEnforcedPowerLimit",
                            library_.power_limit, 1e-3, into);
      read_number<unsigned>("gpu_fan_percent", "nvmlDeviceGetFanSpeed", library_.fan_speed, 1.0,
                            into);
    }
    const char* clock = "nvmlDeviceGetClockInfo";
    read_number<unsigned>("gpu_sm_mhz", clock, library_.clock, 1.0, into, nvml::kSmClock);
    read_number<unsigned>("gpu_memory_mhz", clock, library_.clock, 1.0, into, nvml::kMemoryClock);
    read_number<unsigned>("gpu_temperature_celsius", "nvmlDeviceGetTemperature",
                          library_.temperature, 1.0, into, nvml::kGpuTemperature);
    read_state(into);
    read_number<unsigned long long>("gpu_energy_joules", "nvmlDeviceGetTotalEnergyConsumption",
                                    library_.energy, 1e-3, into);
    read_number<unsigned long long>("gpu_throttle_reasons",
                                    "nvmlDeviceGetCurrentClocksEventReasons",
                                    library_.clock_reasons, 1.0, into);
    if (costly) read_process(into);
  }
  [[nodiscard]] const std::vector<MissingSensor>& missing() const { return missing_.list(); }

 private:
  void give(const char* sensor, double value, std::vector<Reading>& into) {
    missing_.clear(sensor);
    into.push_back({0.0, name_, sensor, value});
  }
  // Whether a call gave a value; the reason is kept for its sensors when it did not.
  template <typename Call, typename Value, typename... Choice>
  bool ask(std::initializer_list<const char*> sensors, const char* function, Call call,
           Value& value, Choice... choice) {
    std::string reason;
    if (call == nullptr) {
      reason = lacks(function);
    } else if (const Result result = call(device_, choice..., &value); result != nvml::kSuccess) {
      reason = library_.words(result);
    } else {
      return true;
    }
    for (const char* sensor : sensors) missing_.set(sensor, reason);
    return false;
  }

  void read_utilisation(std::vector<Reading>& into) {
    const char *kernels = "gpu_utilisation_percent", *memory = "gpu_memory_utilisation_percent";
    nvml::Utilisation rates{};
    if (!ask({kernels, memory}, "nvmlDeviceGetUtilizationRates", library_.utilisation, rates)) {
      return;
    }
    give(kernels, rates.gpu, into);
    give(memory, rates.memory, into);
  }
  void read_memory(std::vector<Reading>& into) {
    const char *used = "gpu_memory_used_bytes", *share = "gpu_memory_occupied_percent";
    nvml::Memory memory{};
    if (!ask({used, share}, "nvmlDeviceGetMemoryInfo", library_.memory, memory)) return;
    give(used, static_cast<double>(memory.used), into);
    give(share, 100.0 * static_cast<double>(memory.used) / static_cast<double>(memory.total), into);
  }
  // `choice` is which of several numbers the call is to give.
  template <typename Value, typename Call, typename... Choice>
  void read_number(const char* sensor, const char* function, Call call, double unit,
                   std::vector<Reading>& into, Choice... choice) {
    Value value{};
    if (ask({sensor}, function, call, value, choice...)) {
      give(sensor, static_cast<double>(value) * unit, into);
    }
  }
  void read_state(std::vector<Reading>& into) {
    int state = 0;
    if (!ask({"gpu_pstate"}, "nvmlDeviceGetPerformanceState", library_.performance_state, state)) {
      return;
    }
    if (state < 0 || state > 15) return missing_.set("gpu_pstate", "the driver does not know it");
    give("gpu_pstate", state, into);
  }
  void read_process(std::vector<Reading>& into) {
    const ProcessMemory memory = process_memory(library_, device_);
    if (!memory.bytes) return missing_.set("gpu_process_memory_bytes", memory.reason);
    give("gpu_process_memory_bytes", static_cast<double>(*memory.bytes), into);
  }

  const Library& library_;
  std::string name_;
  nvml::Device device_ = nullptr;
  MissingSensors missing_;
};

class GpuSensors final : public SensorSource {
 public:
  GpuSensors(const Library& library, std::vector<nvml::NamedDevice> devices,
             std::function<double()> now)
      : now_(std::move(now)) {
    if (!library.unavailable.empty()) {
      no_gpu_ = library.unavailable;
    } else if (devices.empty()) {
      no_gpu_ = "the driver shows this program no graphics processor";
    }
    for (nvml::NamedDevice& device : devices) gpus_.emplace_back(library, std::move(device));
  }

  void read(std::vector<Reading>& into) override {
    const double began = now_();
    const bool costly = cadence_.due(began);
    for (Gpu& gpu : gpus_) gpu.read(costly, into);
    if (costly) cadence_.done(began, now_());
  }
  [[nodiscard]] std::vector<MissingSensor> missing() const override {
    std::vector<MissingSensor> all;
    if (!no_gpu_.empty()) all.push_back({"cuda", "gpu", no_gpu_});
    for (const Gpu& gpu : gpus_) all.insert(all.end(), gpu.missing().begin(), gpu.missing().end());
    return all;
  }

 private:
  std::function<double()> now_;
  std::string no_gpu_;
  std::vector<Gpu> gpus_;
  Cadence cadence_;
};

class BothSensors final : public SensorSource {
 public:
  void read(std::vector<Reading>& into) override {
    system_->read(into);
    gpu_->read(into);
  }
  [[nodiscard]] std::vector<MissingSensor> missing() const override {
    std::vector<MissingSensor> all = system_->missing();
    for (const MissingSensor& sensor : gpu_->missing()) all.push_back(sensor);
    return all;
  }

 private:
  std::unique_ptr<SensorSource> system_ = system_sensors(), gpu_ = gpu_sensors();
};

}  // namespace

std::unique_ptr<SensorSource> gpu_sensors(const Library& library,
                                          std::vector<nvml::NamedDevice> devices,
                                          std::function<double()> now) {
  return std::make_unique<GpuSensors>(library, std::move(devices), std::move(now));
}

std::unique_ptr<SensorSource> gpu_sensors() {
  return gpu_sensors(nvml::library(), nvml::devices(), steady_seconds);
}

std::unique_ptr<SensorSource> all_sensors() { return std::make_unique<BothSensors>(); }

std::string gpu_description(const Library& library, nvml::Device device) {
  std::array<char, 96> text{};
  const auto size = static_cast<unsigned>(text.size());
  std::string description = "graphics processor";
  if (library.name != nullptr && library.name(device, text.data(), size) == nvml::kSuccess) {
    description = text.data();
  }
  if (library.driver_version != nullptr &&
      library.driver_version(text.data(), size) == nvml::kSuccess) {
    description += fmt::format(", driver {}", text.data());
  }
  unsigned current = 0, pending = 0;
  if (library.ecc_mode != nullptr &&
      library.ecc_mode(device, &current, &pending) == nvml::kSuccess) {
    description += current != 0 ? ", ECC on" : ", ECC off";
  }
  return description;
}

GpuMemory gpu_memory(const Library& library, nvml::Device device) {
  GpuMemory bytes;
  nvml::Memory memory{};
  if (library.memory != nullptr && library.memory(device, &memory) == nvml::kSuccess) {
    bytes.total = static_cast<std::int64_t>(memory.total);
    bytes.used = static_cast<std::int64_t>(memory.used);
  }
  // The newer call tells apart what the older one counts as used.
  nvml::MemoryV2 parts{};
  parts.version = nvml::kMemoryV2;
  if (library.memory_v2 != nullptr && library.memory_v2(device, &parts) == nvml::kSuccess) {
    bytes.total = static_cast<std::int64_t>(parts.total);
    bytes.used = static_cast<std::int64_t>(parts.used + parts.reserved);
    bytes.reserved = static_cast<std::int64_t>(parts.reserved);
  }
  ProcessMemory process = process_memory(library, device);
  bytes.process = process.bytes;
  bytes.no_process = std::move(process.reason);
  return bytes;
}

GpuMemory gpu_memory(const std::string& name) {
  for (const nvml::NamedDevice& device : nvml::devices()) {
    if (device.name != name) continue;
    if (device.handle != nullptr) return gpu_memory(nvml::library(), device.handle);
    return {
        .total = {}, .used = {}, .reserved = {}, .process = {}, .no_process = device.unavailable};
  }
  const std::string& reason = nvml::library().unavailable;
  return {.total = {},
          .used = {},
          .reserved = {},
          .process = {},
          .no_process = reason.empty() ? fmt::format("NVML knows no {}", name) : reason};
}

}  // namespace ridgeline
