#include "measure/ceilings/cuda_host.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/error.h"
#include "devices/cuda_check.h"
#include "measure/ceilings/ceilings.h"
#include "measure/ceilings/cuda_loops.h"

namespace ridgeline::ceilings {
namespace {

using cuda::check;

template <typename Body>
double seconds_of(Body&& body) {
  const auto start = Clock::now();
  body();
  return seconds_since(start);
}

Stream stream_of(const Device& device) { return static_cast<Stream>(device.queue()); }

template <typename Sample>
Ceiling repeated(Ceiling ceiling, int repeats, Sample&& sample) {
  (void)sample();  // loads code, maps memory
  std::vector<double> values;
  for (int i = 0; i < repeats; ++i) values.push_back(sample());
  set_values(ceiling, values);
  return ceiling;
}

Ceiling latency(const Device& device, const char* subject, const char* path) {
  return ceiling_named(device.name(), "latency", subject, path, "device", "s");
}

// Memory of the host: as programs get it, or pinned, which the device reads without a detour.
class HostMemory {
 public:
  HostMemory(std::size_t bytes, bool pinned) {
    if (pinned) {
      check(cudaMallocHost(&pinned_, bytes), "pinned memory");
      data_ = pinned_;
    } else {
      pageable_.resize(bytes);
      data_ = pageable_.data();
    }
    std::memset(data_, 1, bytes);
  }
  ~HostMemory() { (void)cudaFreeHost(pinned_); }
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  [[nodiscard]] void* data() const { return data_; }

 private:
  std::vector<std::byte> pageable_;
  void* pinned_ = nullptr;
  void* data_ = nullptr;
};

}  // namespace

std::vector<Ceiling> launch_latencies(Device& device, int repeats) {
  constexpr int kLaunches = 2000, kWaits = 200, kNodes = 500, kGraphs = 10;
  const Stream stream = stream_of(device);
  std::vector<Ceiling> found;
  device.synchronize();
  found.push_back(repeated(latency(device, "kernel launch", "queued"), repeats, [&] {
    return seconds_of([&] {
             for (int i = 0; i < kLaunches; ++i) launch_nothing(stream);
             device.synchronize();
           }) /
           kLaunches;
  }));
  found.push_back(repeated(latency(device, "synchronise", "launch and wait"), repeats, [&] {
    return seconds_of([&] {
             for (int i = 0; i < kWaits; ++i) {
               launch_nothing(stream);
               device.synchronize();
             }
           }) /
           kWaits;
  }));
  const std::unique_ptr<Recording> graph = device.record([&] {
    for (int i = 0; i < kNodes; ++i) launch_nothing(stream);
  });
  if (graph != nullptr) {
    found.push_back(repeated(latency(device, "graph node", "replayed"), repeats, [&] {
      return seconds_of([&] {
               for (int i = 0; i < kGraphs; ++i) graph->replay();
               device.synchronize();
             }) /
             (kGraphs * kNodes);
    }));
    device.synchronize();
  }
  return found;
}

std::vector<Ceiling> transfer_rates(Device& device, int repeats) {
  const std::size_t bytes =
      std::min<std::size_t>(std::size_t{128} << 20, device.available_memory() / 8);
  const DeviceMemory memory(device, bytes);
  const Stream stream = stream_of(device);
  std::vector<Ceiling> found;
  for (const bool pinned : {false, true}) {
    const HostMemory host(bytes, pinned);
    for (const bool to_device : {true, false}) {
      Ceiling ceiling =
          ceiling_named(device.name(), "transfer", to_device ? "to device" : "from device",
                        pinned ? "pinned" : "pageable", "device", "B/s");
      found.push_back(repeated(std::move(ceiling), repeats, [&] {
        // Waited for by the host: copies of pageable memory are partly the host's own work.
        return static_cast<double>(bytes) / seconds_of([&] {
                 const cudaError_t error = to_device
                                               ? cudaMemcpyAsync(memory.data(), host.data(), bytes,
                                                                 cudaMemcpyHostToDevice, stream)
                                               : cudaMemcpyAsync(host.data(), memory.data(), bytes,
                                                                 cudaMemcpyDeviceToHost, stream);
                 check(error, "a copy");
                 check(cudaStreamSynchronize(stream), "waiting for a copy");
               });
      }));
    }
  }
  return found;
}

}  // namespace ridgeline::ceilings
