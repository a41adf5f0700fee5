#pragma once

// Where bytes live and time passes. A device knows nothing of what is computed on it.

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/precision.h"
#include "devices/kernel.h"

namespace ridgeline {

// Launches that a device has written down once and starts as a whole.
class Recording {
 public:
  virtual ~Recording() = default;
  virtual void replay() = 0;  // queued, like a launch
};

// All calls come from one host thread. upload, download, fill and launch may be queued: they run in
// the order of the calls, and host memory handed to them must stay as it is until synchronize().
class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual std::string name() const = 0;  // "cpu", "cuda:0"
  [[nodiscard]] virtual std::string kind() const = 0;  // the device that backends name: "cpu"
  // The hardware, as a key for measurements: "AMD EPYC 7763".
  [[nodiscard]] virtual std::string description() const = 0;
  // Why the device cannot compute in a precision; empty when it can.
  [[nodiscard]] virtual std::string refuse(Precision precision) const = 0;
  // Bytes that an allocation can still get, as far as the system tells.
  [[nodiscard]] virtual std::size_t available_memory() const = 0;

  // 64-byte aligned. Throws a failure when there is too little.
  [[nodiscard]] virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual void release(std::byte* memory, std::size_t bytes) noexcept = 0;
  // What an allocation of so many bytes takes up: memory comes in pages or blocks.
  [[nodiscard]] virtual std::size_t occupied(std::size_t bytes) const { return bytes; }

  // Our allocations on a device with memory of its own, and of those, what batches on their way to
  // this part of its memory keep beside it (see stage()).
  [[nodiscard]] virtual std::size_t allocated_memory() const { return 0; }
  [[nodiscard]] virtual std::size_t staging_memory(std::span<const std::byte>) const { return 0; }
  // Tells graphics processors of one kind apart, on whatever machine; empty: there are no others.
  [[nodiscard]] virtual std::string unique_id() const { return {}; }
  // What the driver, its libraries and other programs have taken of the device's memory beyond our
  // allocations; nothing when that cannot be told.
  [[nodiscard]] virtual std::optional<std::size_t> runtime_memory() const { return std::nullopt; }

  virtual void upload(std::byte* dst, const void* src, std::size_t bytes) = 0;
  // Like upload, for the next batch: the host's memory is free again at once, and the bytes travel
  // while the device still computes.
  virtual void stage(std::byte* dst, const void* src, std::size_t bytes) = 0;
  virtual void download(void* dst, const std::byte* src, std::size_t bytes) = 0;
  virtual void fill(std::byte* dst, std::byte value, std::size_t bytes) = 0;
  // Runs a kernel. REQUIRES: kernel and args live until synchronize().
  virtual void launch(const Kernel& kernel, const KernelArgs& args) = 0;
  virtual void synchronize() = 0;
  // From now on `look` is called every few milliseconds while the host waits for the device, with
  // the seconds that this wait has taken; what it throws ends the wait. Where work ends without
  // others' doing it is never called.
  virtual void watch(std::function<void(double waited_seconds)> look) { (void)look; }
  // Where kernels queue their work; handed to them in their arguments.
  [[nodiscard]] virtual void* queue() const { return nullptr; }
  // Writes down what `launches` launches, without running it. Null where a device gains nothing
  // by that. REQUIRES: all kernels are capturable; they and their arguments outlive the recording.
  [[nodiscard]] virtual std::unique_ptr<Recording> record(const std::function<void()>& launches) {
    (void)launches;
    return nullptr;
  }
  // Seconds from an idle device to the end of what `launches` launches, by the device's own clock.
  [[nodiscard]] virtual double time(const std::function<void()>& launches) = 0;

  // Runs a kernel beside what is launched after it, once all launched before it is done; kernels
  // that were launched so run one after the other. join() makes what is launched from then on wait
  // for the first `count` of them, counted from the device's beginning, and throws what one of them
  // threw. Where a device has no second queue they are launches like any other.
  virtual void launch_beside(const Kernel& kernel, const KernelArgs& args) { launch(kernel, args); }
  virtual void join(std::size_t count) { (void)count; }
  // How many were launched so far.
  [[nodiscard]] virtual std::size_t launched_beside() const { return 0; }
};

// A block of device memory with an owner.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(Device& device, std::size_t bytes)
      : device_(&device), data_(device.allocate(bytes)), bytes_(bytes) {}
  DeviceMemory(DeviceMemory&& other) noexcept { swap(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory() {
    if (data_ != nullptr) device_->release(data_, bytes_);
  }

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return bytes_; }

 private:
  void swap(DeviceMemory& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }

  Device* device_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// The host's own cores and memory: everything runs at once.
[[nodiscard]] std::unique_ptr<Device> make_cpu_device();

// Graphics processor `index` as a device; throws bad_input with the reason when it cannot be used.
[[nodiscard]] std::unique_ptr<Device> make_cuda_device(int index);
// What a graphics processor tells of itself.
struct GpuInfo {
  std::string name;
  std::string capability;  // "9.0"
  int multiprocessors = 0;
  double clock_mhz = 0.0;  // the highest
  std::int64_t memory_bytes = 0, l2_bytes = 0;
  std::string cuda_driver;  // the newest CUDA that the driver serves
};
// All of them; none where CUDA cannot be used.
[[nodiscard]] std::vector<GpuInfo> cuda_devices();
// Why this build cannot use any CUDA device here; empty when it can.
[[nodiscard]] std::string cuda_unavailable();

// "cuda" of "cuda:1".
[[nodiscard]] std::string device_kind(std::string_view name);
// "cuda" means its first: "cuda:0". Other names stay as they are.
[[nodiscard]] std::string device_name(std::string_view name);

// By name, as --device gives it: "cpu", "cuda:0", "cuda" (the first). Throws bad_input for one that
// does not exist here.
[[nodiscard]] std::unique_ptr<Device> make_device(const std::string& name);

}  // namespace ridgeline
