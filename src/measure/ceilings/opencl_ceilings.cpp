// The ceilings of an OpenCL device: arithmetic, memory and caches, launches, copies to and from the
// host. Times are the device's own; latencies and copies are the host's.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "backends/opencl/launch.h"
#include "base/clock.h"
#include "base/error.h"
#include "measure/ceilings/ceilings.h"
#include "measure/ceilings/cpu_levels.h"

namespace ridgeline::ceilings {
namespace {

using opencl::Code;
using opencl::Launch;
using opencl::Properties;
using opencl::Queue;
using opencl::Size;

constexpr const char* kFile = "kernels/ceilings.cl";

Queue& queue_of(const Device& device) { return *static_cast<Queue*>(device.queue()); }

const Properties& properties_of(const Device& device) {
  return queue_of(device).context().properties();
}

// How many turns take `seconds`; time(turns) gives those of so many.
template <typename Time>
std::int64_t turns_for(double seconds, Time&& time) {
  (void)time(1);  // loads code, wakes the clock
  constexpr std::int64_t kMost = std::int64_t{1} << 28;
  for (std::int64_t turns = 1;; turns *= 4) {
    const double taken = time(turns);
    if (taken >= seconds / 4 || turns >= kMost) {
      const double needed = std::ceil(static_cast<double>(turns) * seconds / taken);
      return std::clamp<std::int64_t>(static_cast<std::int64_t>(needed), 1, kMost);
    }
  }
}

// The type of a work-item's values: wide vectors fill a CPU's registers, graphics processors take
// single numbers.
struct Number {
  const char* element;
  int lanes;

  [[nodiscard]] std::string name() const {
    return lanes == 1 ? element : fmt::format("{}{}", element, lanes);
  }
  [[nodiscard]] std::string options() const {
    const bool fp64 = std::string_view(element) == "double";
    const bool fp16 = std::string_view(element) == "half";
    return fmt::format("-DVECTOR={} -DELEMENT={}{}", name(), element,
                       fp64   ? " -DNEEDS_FP64"
                       : fp16 ? " -DNEEDS_FP16"
                              : "");
  }
};

// Work-items that keep the whole device busy, in groups.
struct Spread {
  std::int64_t items = 1, group = 1;
};

Spread spread_of(const Properties& properties) {
  if (properties.cpu) return {properties.compute_units, 1};
  constexpr std::int64_t kGroup = 64, kGroupsPerUnit = 32;
  return {properties.compute_units * kGroup * kGroupsPerUnit, kGroup};
}

std::vector<double> rates_of(const CeilingEffort& effort, const std::function<double()>& sample) {
  std::vector<double> rates;
  for (int i = 0; i < effort.repeats; ++i) rates.push_back(sample());
  return rates;
}

constexpr int kChains = 12;  // as in ceilings.cl

// Of the ways to write the values down the fastest.
Ceiling measure_arithmetic(Device& device, const char* subject, const char* element,
                           const CeilingEffort& effort) {
  Queue& queue = queue_of(device);
  const Spread spread = spread_of(properties_of(device));
  constexpr std::int64_t kLargest = 16 * sizeof(double);
  const DeviceMemory sink(device, static_cast<std::size_t>(spread.items * kLargest));
  Ceiling best = ceiling_named(device.name(), "compute", subject, "", "device", "FLOP/s");
  for (const int lanes : {1, 4, 8, 16}) {
    const Number number = {element, lanes};
    const Code code = {kFile, "multiply_adds", number.options()};
    if (!queue.context().refuse(code).empty()) continue;
    const auto time = [&](std::int64_t rounds) {
      return device.time([&] {
        Launch(queue, code)
            .buffer(sink.data())
            .value(static_cast<std::int32_t>(rounds))
            .value(0.999F)
            .run({spread.items}, {spread.group});
      });
    };
    const std::int64_t rounds = turns_for(effort.repeat_seconds, time);
    const double flops =
        2.0 * kChains * lanes * static_cast<double>(spread.items) * static_cast<double>(rounds);
    Ceiling ceiling = best;
    ceiling.path = number.name();
    set_values(ceiling, rates_of(effort, [&] { return flops / time(rounds); }));
    if (ceiling.high > best.high) best = std::move(ceiling);
  }
  return best;
}

struct StreamKind {
  const char *kernel, *name;
  int arrays;  // touched by a pass, as STREAM counts
};
constexpr std::array<StreamKind, 4> kStreams = {{{"read_passes", "read", 1},
                                                 {"write_passes", "write", 1},
                                                 {"copy_passes", "copy", 2},
                                                 {"triad_passes", "triad", 3}}};

// One way through arrays that fill `bytes` together.
double rate_of(Device& device, const DeviceMemory& memory, std::int64_t bytes,
               const StreamKind& kind, const CeilingEffort& effort, std::vector<double>& rates) {
  Queue& queue = queue_of(device);
  const Properties& properties = properties_of(device);
  const Number number = {"float", properties.cpu ? 16 : 4};
  const std::int64_t size = number.lanes * std::int64_t{sizeof(float)};
  Spread spread = spread_of(properties);
  // A multiple of four for each work-item.
  const std::int64_t whole = bytes / kind.arrays / size;
  while (spread.items > spread.group && whole / spread.items < 4) spread.items /= 2;
  const std::int64_t count = whole / spread.items / 4 * 4;
  if (count == 0) return 0.0;
  const std::int64_t numbers = count * spread.items;
  // Items of a CPU take stretches of their own, those of other devices lie beside each other.
  const std::int64_t first = properties.cpu ? count : 1;
  const std::int64_t step = properties.cpu ? 1 : spread.items;
  const auto array = [&](std::int64_t i) {
    return memory.data() + (i < kind.arrays ? i : 0) * numbers * size;
  };
  const auto time = [&](std::int64_t passes) {
    return device.time([&] {
      Launch(queue, {kFile, kind.kernel, number.options()})
          .buffer(array(0))
          .buffer(array(kind.arrays > 1 ? 1 : 0))
          .buffer(array(2))
          .value(first)
          .value(step)
          .value(count)
          .value(static_cast<std::int32_t>(passes))
          .value(1.0F)
          .run({spread.items}, {spread.group});
    });
  };
  const std::int64_t passes = turns_for(effort.repeat_seconds, time);
  const double moved = static_cast<double>(numbers * size * kind.arrays * passes);
  rates = rates_of(effort, [&] { return moved / time(passes); });
  return *std::max_element(rates.begin(), rates.end());
}

struct Level {
  std::string name;
  std::int64_t capacity = 0;
  std::vector<std::int64_t> sets;  // bytes that the device goes through; the fastest counts
};

// A CPU's caches as the system tells of them, a graphics processor's last one as OpenCL does.
std::vector<Level> levels_of(const Device& device, const CeilingEffort& effort) {
  const Properties& properties = properties_of(device);
  std::vector<Level> levels;
  const auto free = static_cast<std::int64_t>(device.available_memory());
  const std::int64_t most = std::min(properties.largest_allocation, free / 4);
  if (properties.cpu) {
    const int units = properties.compute_units;
    for (const MemoryLevel& level : memory_levels(read_environment(), units, effort.memory_bytes)) {
      Level all{level.name, level.capacity, {}};
      for (const std::int64_t set : level.sets) all.sets.push_back(std::min(set * units, most));
      levels.push_back(std::move(all));
    }
    return levels;
  }
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;
  if (properties.cache_bytes > 0) {
    levels.push_back({"cache",
                      properties.cache_bytes,
                      {properties.cache_bytes / 2, properties.cache_bytes / 3}});
  }
  const std::int64_t wanted = effort.memory_bytes > 0 ? effort.memory_bytes : kMostBytes;
  levels.push_back({"memory", properties.memory_bytes, {std::min(wanted, most)}});
  return levels;
}

std::vector<Ceiling> measure_level(Device& device, const Level& level,
                                   const CeilingEffort& effort) {
  const std::int64_t bytes = *std::max_element(level.sets.begin(), level.sets.end());
  DeviceMemory memory(device, static_cast<std::size_t>(bytes));
  device.fill(memory.data(), std::byte{0}, memory.size());
  std::vector<Ceiling> found;
  for (const StreamKind& kind : kStreams) {
    double best = 0.0;
    std::vector<double> rates, best_rates;
    for (const std::int64_t set : level.sets) {
      const double rate = rate_of(device, memory, set, kind, effort, rates);
      if (rate > best) best_rates = rates;
      best = std::max(best, rate);
    }
    if (best_rates.empty()) continue;
    Ceiling ceiling =
        ceiling_named(device.name(), "bandwidth", level.name, kind.name, "device", "B/s");
    ceiling.capacity_bytes = level.capacity;
    set_values(ceiling, best_rates);
    found.push_back(std::move(ceiling));
  }
  return found;
}

template <typename Body>
double seconds_of(Body&& body) {
  const auto start = Clock::now();
  body();
  return seconds_since(start);
}

Ceiling repeated(Ceiling ceiling, const CeilingEffort& effort,
                 const std::function<double()>& sample) {
  (void)sample();  // loads code, maps memory
  set_values(ceiling, rates_of(effort, sample));
  return ceiling;
}

std::vector<Ceiling> launch_latencies(Device& device, const CeilingEffort& effort) {
  constexpr int kLaunches = 200, kWaits = 50, kNodes = 100, kReplays = 4;
  const auto latency = [&](const char* subject, const char* path) {
    return ceiling_named(device.name(), "latency", subject, path, "device", "s");
  };
  const auto launch = [&] {
    Launch(queue_of(device), {kFile, "nothing", Number{"float", 1}.options()})
        .value(std::int32_t{0})
        .run({1}, {1});
  };
  std::vector<Ceiling> found;
  found.push_back(repeated(latency("kernel launch", "queued"), effort, [&] {
    return seconds_of([&] {
             for (int i = 0; i < kLaunches; ++i) launch();
             device.synchronize();
           }) /
           kLaunches;
  }));
  found.push_back(repeated(latency("synchronise", "launch and wait"), effort, [&] {
    return seconds_of([&] {
             for (int i = 0; i < kWaits; ++i) {
               launch();
               device.synchronize();
             }
           }) /
           kWaits;
  }));
  const std::unique_ptr<Recording> recording = device.record([&] {
    for (int i = 0; i < kNodes; ++i) launch();
  });
  if (recording != nullptr) {
    found.push_back(repeated(latency("graph node", "replayed"), effort, [&] {
      return seconds_of([&] {
               for (int i = 0; i < kReplays; ++i) recording->replay();
               device.synchronize();
             }) /
             (kReplays * kNodes);
    }));
  }
  return found;
}

// Of memory as programs get it; batches take the way that the driver prefers (stage()).
std::vector<Ceiling> transfer_rates(Device& device, const CeilingEffort& effort) {
  const std::size_t bytes =
      std::min<std::size_t>(std::size_t{64} << 20, device.available_memory() / 8);
  const DeviceMemory memory(device, bytes);
  std::vector<std::byte> host(bytes, std::byte{1});
  std::vector<Ceiling> found;
  for (const bool to_device : {true, false}) {
    Ceiling ceiling =
        ceiling_named(device.name(), "transfer", to_device ? "to device" : "from device",
                      "pageable", "device", "B/s");
    found.push_back(repeated(std::move(ceiling), effort, [&] {
      return static_cast<double>(bytes) / seconds_of([&] {
               if (to_device) {
                 device.upload(memory.data(), host.data(), bytes);
               } else {
                 device.download(host.data(), memory.data(), bytes);
               }
               device.synchronize();
             });
    }));
  }
  return found;
}

}  // namespace

std::vector<Ceiling> measure_opencl(Device& device, const CeilingProgress& progress,
                                    const CeilingEffort& effort) {
  const Properties& properties = properties_of(device);
  const std::vector<Level> levels = levels_of(device, effort);
  std::vector<Ceiling> found;
  std::int64_t done = 0;
  const std::int64_t parts =
      3 + static_cast<std::int64_t>(levels.size()) + properties.fp64 + properties.fp16;
  const auto announce = [&](const std::string& what) {
    if (progress) progress(done, parts, what);
    ++done;
  };
  const auto append = [&](const std::vector<Ceiling>& more) {
    found.insert(found.end(), more.begin(), more.end());
  };
  announce("fp32 multiply-adds");
  found.push_back(measure_arithmetic(device, "fp32", "float", effort));
  if (properties.fp64) {
    announce("fp64 multiply-adds");
    found.push_back(measure_arithmetic(device, "fp64", "double", effort));
  }
  if (properties.fp16) {
    announce("fp16 multiply-adds");
    found.push_back(measure_arithmetic(device, "fp16", "half", effort));
  }
  for (const Level& level : levels) {
    announce(level.name);
    append(measure_level(device, level, effort));
  }
  announce("launches");
  append(launch_latencies(device, effort));
  announce("copies to and from the host");
  append(transfer_rates(device, effort));
  return found;
}

}  // namespace ridgeline::ceilings
