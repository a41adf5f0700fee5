// The ceilings of a graphics processor: plain and tensor arithmetic, memory and second-level cache,
// launches, copies to and from the host. Times are the device's own, by events.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "analysis/stats/summary.h"
#include "backends/registry.h"
#include "base/error.h"
#include "devices/cuda_check.h"
#include "measure/ceilings/ceilings.h"
#include "measure/ceilings/cuda_host.h"
#include "measure/ceilings/cuda_loops.h"
#include "measure/ceilings/hardware.h"

namespace ridgeline::ceilings {
namespace {

using cuda::check;

Stream stream_of(const Device& device) { return static_cast<Stream>(device.queue()); }

// How many turns take `seconds`; time(turns) gives those of so many.
template <typename Time>
std::int64_t turns_for(double seconds, Time&& time) {
  (void)time(1);  // loads code, wakes the clock
  for (std::int64_t turns = 1;; turns *= 4) {
    const double taken = time(turns);
    if (taken >= seconds / 4 || turns > (std::int64_t{1} << 40)) {
      return std::max<std::int64_t>(
          1, static_cast<std::int64_t>(std::ceil(static_cast<double>(turns) * seconds / taken)));
    }
  }
}

struct ArithmeticKind {
  Arithmetic arithmetic;
  const char* subject;
  const char* path;
};

Ceiling measure_arithmetic(Device& device, const ArithmeticKind& kind,
                           const CeilingEffort& effort) {
  const DeviceMemory sink(device, sizeof(float)), elapsed(device, sizeof(ElapsedOnDevice));
  ArithmeticLaunch launch{.arithmetic = kind.arithmetic,
                          .sink = reinterpret_cast<float*>(sink.data()),
                          .elapsed = reinterpret_cast<ElapsedOnDevice*>(elapsed.data())};
  const auto time = [&](std::int64_t rounds) {
    launch.rounds = rounds;
    return device.time([&] { launch_arithmetic(launch, stream_of(device)); });
  };
  const std::int64_t rounds = turns_for(effort.repeat_seconds, time);
  const double flops = flops_per_round(kind.arithmetic) * static_cast<double>(rounds);
  std::vector<double> rates, clocks;
  for (int i = 0; i < effort.repeats; ++i) {
    const double seconds = time(rounds);
    ElapsedOnDevice seen;
    device.download(&seen, elapsed.data(), sizeof(seen));
    device.synchronize();
    rates.push_back(flops / seconds);
    clocks.push_back(1e3 * static_cast<double>(seen.cycles) /
                     static_cast<double>(seen.nanoseconds));
  }
  Ceiling ceiling =
      ceiling_named(device.name(), "compute", kind.subject, kind.path, "device", "FLOP/s");
  set_values(ceiling, rates);
  ceiling.clock_mhz = median_interval(clocks).median;
  return ceiling;
}

// The tensor cores by warp instructions and by the library's products; "tensor" is the higher.
std::vector<Ceiling> measure_tensor(Device& device, Precision precision,
                                    const CeilingEffort& effort) {
  const Arithmetic arithmetic = precision == Precision::tf32   ? Arithmetic::tf32_tensor
                                : precision == Precision::bf16 ? Arithmetic::bf16_tensor
                                                               : Arithmetic::fp16_tensor;
  const std::string subject(name_of(precision));
  std::vector<Ceiling> ways = {
      measure_arithmetic(device, {arithmetic, subject.c_str(), "tensor mma.sync"}, effort)};
  for (const Backend* backend : all_backends()) {
    if (backend->device != device.kind() || backend->product_rates == nullptr) continue;
    const std::vector<double> products =
        backend->product_rates(device, precision, effort.repeats, effort.repeat_seconds);
    if (products.empty()) continue;
    Ceiling ceiling = ways.front();
    ceiling.path = "tensor cuBLASLt";
    ceiling.clock_mhz.reset();
    set_values(ceiling, products);
    ways.push_back(std::move(ceiling));
  }
  Ceiling best = *std::max_element(ways.begin(), ways.end(),
                                   [](const auto& x, const auto& y) { return x.high < y.high; });
  best.path = "tensor";
  ways.insert(ways.begin(), std::move(best));
  return ways;
}

struct StreamKind {
  StreamPath path;
  const char* name;
  int arrays;  // touched by a pass, as STREAM counts
};
constexpr StreamKind kStreams[] = {{StreamPath::read, "read", 1},
                                   {StreamPath::write, "write", 1},
                                   {StreamPath::copy, "copy", 2},
                                   {StreamPath::triad, "triad", 3}};

// A level and memory that fills it, cut into as many arrays as a path touches.
class StreamMeasurement {
 public:
  StreamMeasurement(Device& device, std::string level, std::int64_t capacity, std::int64_t bytes,
                    const CeilingEffort& effort)
      : device_(device),
        level_(std::move(level)),
        capacity_(capacity),
        effort_(effort),
        packs_(bytes / kPack / kPackStep * kPackStep) {
    if (packs_ < 3 * kPackStep) {
      fail("{}: too little memory is free to measure the bandwidth of {}", device.name(), level_);
    }
    memory_ = DeviceMemory(device, static_cast<std::size_t>(packs_ * kPack));
    launch_fill(reinterpret_cast<float*>(memory_.data()), packs_, stream_of(device));
    device.synchronize();
  }

  Ceiling measure(const StreamKind& kind) {
    std::vector<Way> ways;
    for (const int turn : {4, 8}) {
      ways.push_back({turn, false, 0});
      ways.push_back({turn, false, 8 * cuda::device_limits().multiprocessors});
    }
    const bool by_library = kind.path == StreamPath::write || kind.path == StreamPath::copy;
    if (by_library) ways.push_back({0, true, 0});
    const Way* fastest = nullptr;
    double best = 0.0;
    std::int64_t passes = 1;
    for (const Way& way : ways) {
      const std::int64_t needed =
          turns_for(effort_.repeat_seconds, [&](std::int64_t n) { return time(kind, way, n); });
      const double rate = bytes_of(kind) * static_cast<double>(needed) / time(kind, way, needed);
      if (rate <= best) continue;
      best = rate;
      fastest = &way;
      passes = needed;
    }
    if (fastest == nullptr) fail("{}: {} {} took no time", device_.name(), level_, kind.name);
    std::vector<double> rates;
    for (int i = 0; i < effort_.repeats; ++i) {
      rates.push_back(bytes_of(kind) * static_cast<double>(passes) / time(kind, *fastest, passes));
    }
    Ceiling ceiling =
        ceiling_named(device_.name(), "bandwidth", level_, kind.name, "device", "B/s");
    ceiling.capacity_bytes = capacity_;
    set_values(ceiling, rates);
    return ceiling;
  }

 private:
  static constexpr std::int64_t kPack = 16;  // bytes

  // One way to make a pass: our kernels, or the driver's copy and fill.
  struct Way {
    int turn = 4;
    bool library = false;
    int blocks = 0;
  };

  // Of one array.
  [[nodiscard]] std::int64_t packs_of(const StreamKind& kind) const {
    return packs_ / kind.arrays / kPackStep * kPackStep;
  }
  // Of one pass.
  [[nodiscard]] double bytes_of(const StreamKind& kind) const {
    return static_cast<double>(packs_of(kind)) * kPack * kind.arrays;
  }

  [[nodiscard]] double time(const StreamKind& kind, const Way& way, std::int64_t passes) {
    const Stream stream = stream_of(device_);
    const std::int64_t packs = packs_of(kind);
    const auto array = [&](std::int64_t i) {
      return memory_.data() + (i < kind.arrays ? i : 0) * packs * kPack;
    };
    return device_.time([&] {
      if (way.library) {
        for (std::int64_t pass = 0; pass < passes; ++pass) {
          const auto bytes = static_cast<std::size_t>(packs * kPack);
          check(kind.path == StreamPath::copy
                    ? cudaMemcpyAsync(array(0), array(1), bytes, cudaMemcpyDeviceToDevice, stream)
                    : cudaMemsetAsync(array(0), 0x3F, bytes, stream),
                "a copy on the device");
        }
        return;
      }
      StreamLaunch launch{.path = kind.path,
                          .a = reinterpret_cast<float*>(array(0)),
                          .b = reinterpret_cast<float*>(array(1)),
                          .c = reinterpret_cast<float*>(array(2)),
                          .packs = packs,
                          .packs_per_turn = way.turn,
                          .blocks = way.blocks};
      // Blocks that take several turns also make all passes: nothing drains between them.
      if (way.blocks > 0) {
        launch.passes = static_cast<int>(std::min<std::int64_t>(passes, 1 << 30));
        passes = 1;
      }
      for (std::int64_t pass = 0; pass < passes; ++pass) launch_stream(launch, stream);
    });
  }

  Device& device_;
  std::string level_;
  std::int64_t capacity_;
  const CeilingEffort& effort_;
  std::int64_t packs_;
  DeviceMemory memory_;
};

std::optional<double> datasheet_of(const KnownGpu& gpu, const Ceiling& ceiling) {
  if (ceiling.kind == "bandwidth" && ceiling.subject == "memory") {
    return gpu.memory_bytes_per_second;
  }
  if (ceiling.kind != "compute") return std::nullopt;
  const auto found = gpu.flops.find(ceiling.subject);
  return found == gpu.flops.end() ? std::nullopt : std::optional<double>(found->second);
}

constexpr Precision kTensorPrecisions[] = {Precision::tf32, Precision::bf16, Precision::fp16};

}  // namespace

std::vector<Ceiling> measure_cuda(Device& device, const CeilingProgress& progress,
                                  const CeilingEffort& effort) {
  std::vector<Ceiling> found;
  std::int64_t done = 0;
  constexpr std::int64_t kParts = 2 + std::size(kTensorPrecisions) + 2 * std::size(kStreams) + 2;
  const auto announce = [&](const std::string& what) {
    if (progress) progress(done, kParts, what);
    ++done;
  };
  const auto append = [&](const std::vector<Ceiling>& more) {
    found.insert(found.end(), more.begin(), more.end());
  };
  constexpr ArithmeticKind kPlain[] = {{Arithmetic::fp32, "fp32", "cuda core"},
                                       {Arithmetic::fp64, "fp64", "cuda core"}};
  for (const ArithmeticKind& kind : kPlain) {
    announce(fmt::format("{} on cuda cores", kind.subject));
    found.push_back(measure_arithmetic(device, kind, effort));
  }
  for (const Precision precision : kTensorPrecisions) {
    announce(fmt::format("{} on tensor cores", name_of(precision)));
    if (!device.refuse(precision).empty()) continue;
    append(measure_tensor(device, precision, effort));
  }
  const std::int64_t l2_bytes = cuda::device_limits().l2_bytes;
  const auto measure_level = [&](const std::string& level, std::int64_t capacity,
                                 std::int64_t bytes) {
    StreamMeasurement measurement(device, level, capacity, bytes, effort);
    for (const StreamKind& kind : kStreams) {
      announce(fmt::format("{} {}", level, kind.name));
      found.push_back(measurement.measure(kind));
    }
  };
  // A third of the cache: half of it may be far away, and data may lie in both halves.
  measure_level("L2", l2_bytes, l2_bytes / 3);
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "asking for memory");
  constexpr std::int64_t kMostBytes = std::int64_t{3} << 30;
  const std::int64_t wanted = effort.memory_bytes > 0 ? effort.memory_bytes : kMostBytes;
  measure_level("memory", static_cast<std::int64_t>(total),
                std::min<std::int64_t>(wanted, static_cast<std::int64_t>(free / 2)));
  announce("launches");
  append(launch_latencies(device, effort.repeats));
  announce("copies to and from the host");
  append(transfer_rates(device, effort.repeats));
  if (const std::optional<KnownGpu> known = known_gpu(device.description())) {
    for (Ceiling& ceiling : found) ceiling.datasheet = datasheet_of(*known, ceiling);
  }
  return found;
}

}  // namespace ridgeline::ceilings
