#include "analysis/roofline/roofs.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"

namespace ridgeline {
namespace {

constexpr const char* kOneCore = "one core";
constexpr const char* kAllCores = "all cores";
constexpr const char* kMemory = "memory";
// One core's rate times the threads counts as all cores' when it comes that near: what is missing
// is the spread of the two measurements.
constexpr double kNearlyAll = 0.9;

struct Best {
  double rate = 0.0;
  std::string path;
  std::int64_t capacity = 0;
};

// The fastest path of one scope, by unit or level.
std::map<std::string, Best> best_of(std::span<const Ceiling> ceilings, const std::string& device,
                                    const std::string& kind, bool one_core) {
  std::map<std::string, Best> found;
  for (const Ceiling& ceiling : ceilings) {
    if (ceiling.device != device || ceiling.kind != kind) continue;
    if ((ceiling.scope == kOneCore) != one_core) continue;
    Best& best = found[kind == "compute" ? unit_of(ceiling) : ceiling.subject];
    best.capacity = std::max(best.capacity, ceiling.capacity_bytes);
    const double rate = std::max(ceiling.value, ceiling.high);
    if (rate > best.rate) {
      best.rate = rate;
      best.path = ceiling.path;
    }
  }
  return found;
}

// For a number of threads, from one core's and all cores'. Where only one of them was measured that
// one must serve: it is still what can be reached, or at least not less.
std::map<std::string, Best> for_threads(const std::map<std::string, Best>& one,
                                        const std::map<std::string, Best>& all, int threads) {
  std::map<std::string, Best> found = all;
  if (threads <= 0) return found;
  for (const auto& [name, core] : one) {
    const double scaled = core.rate * threads;
    const auto place = found.find(name);
    if (place == found.end()) {
      found[name] = {scaled, core.path, core.capacity * threads};
    } else if (scaled < kNearlyAll * place->second.rate) {
      const std::int64_t whole = place->second.capacity;
      place->second = {scaled, core.path, std::min(core.capacity * threads, whole)};
    }
  }
  return found;
}

// A recorded graph pays for a node, plain launches for a launch, a CPU for waking its threads.
std::optional<double> latency_of(std::span<const Ceiling> ceilings, const std::string& device,
                                 int threads) {
  static constexpr std::array<const char*, 3> kSubjects = {"graph node", "kernel launch",
                                                           "fork-join"};
  for (const char* subject : kSubjects) {
    for (const Ceiling& ceiling : ceilings) {
      if (ceiling.device != device || ceiling.kind != "latency" || ceiling.subject != subject) {
        continue;
      }
      // One thread wakes no other.
      if (ceiling.subject == "fork-join" && threads == 1) continue;
      return ceiling.value;
    }
  }
  return std::nullopt;
}

// From the ceilings of devices "ranks:4" and "gpu-ranks:4".
std::vector<LinkRoof> links_of(std::span<const Ceiling> ceilings) {
  constexpr std::string_view kRanks = "ranks:", kGpuRanks = "gpu-ranks:";
  std::vector<LinkRoof> links;
  for (const Ceiling& ceiling : ceilings) {
    const bool gpus = ceiling.device.starts_with(kGpuRanks);
    if ((!gpus && !ceiling.device.starts_with(kRanks)) || ceiling.kind != "latency") continue;
    const std::string count = ceiling.device.substr(gpus ? kGpuRanks.size() : kRanks.size());
    links.push_back(
        {count + (gpus ? " GPU ranks" : " ranks"), ceiling.capacity_bytes, ceiling.low});
  }
  std::stable_sort(links.begin(), links.end(),
                   [](const LinkRoof& a, const LinkRoof& b) { return a.bytes < b.bytes; });
  return links;
}

std::string scope_text(const std::string& device, bool scaled, int threads) {
  if (device != "cpu") return "device";
  if (!scaled) return kAllCores;
  return threads == 1 ? kOneCore : fmt::format("one core x {}, at most all cores", threads);
}

}  // namespace

std::string link_unit(int ranks, std::string_view device_kind) {
  return fmt::format("{}{} ranks", ranks, device_kind == "cuda" ? " GPU" : "");
}

std::string unit_of(const Ceiling& ceiling) {
  const bool own =
      ceiling.path == "tensor" || (ceiling.device == "cpu" && ceiling.subject == "bf16");
  return own ? ceiling.path + " " + ceiling.subject : ceiling.subject;
}

const ComputeRoof* Roofs::find_compute(const std::string& unit) const {
  for (const ComputeRoof& roof : compute) {
    if (roof.unit == unit) return &roof;
  }
  return nullptr;
}

std::optional<double> Roofs::all_reduce_seconds(const std::string& unit, double bytes) const {
  const LinkRoof* before = nullptr;
  for (const LinkRoof& link : links) {
    if (link.unit != unit) continue;
    const auto size = static_cast<double>(link.bytes);
    if (bytes <= size) {
      if (before == nullptr) return link.seconds;
      const auto smaller = static_cast<double>(before->bytes);
      const double share = (bytes - smaller) / (size - smaller);
      return before->seconds + share * (link.seconds - before->seconds);
    }
    before = &link;
  }
  if (before == nullptr) return std::nullopt;
  return before->seconds * bytes / static_cast<double>(before->bytes);
}

const ComputeRoof* Roofs::find_precision(const std::string& precision) const {
  if (precision == "fp32") return find_compute(precision);
  for (const ComputeRoof& roof : compute) {
    if (roof.unit.ends_with(" " + precision)) return &roof;
  }
  return nullptr;
}

const MemoryRoof& Roofs::level_for(std::int64_t working_set_bytes) const {
  ensure(!memory.empty(), "no bandwidth of {} is known", device);
  for (const MemoryRoof& roof : memory) {
    if (roof.capacity_bytes == 0 || working_set_bytes <= roof.capacity_bytes) return roof;
  }
  return memory.back();
}

Roofs roofs_of(std::span<const Ceiling> ceilings, const std::string& device, int threads) {
  Roofs roofs;
  roofs.device = device;
  roofs.threads = threads;
  const auto all_compute = best_of(ceilings, device, "compute", false);
  const auto all_memory = best_of(ceilings, device, "bandwidth", false);
  const auto compute =
      for_threads(best_of(ceilings, device, "compute", true), all_compute, threads);
  const auto memory =
      for_threads(best_of(ceilings, device, "bandwidth", true), all_memory, threads);
  bool scaled = false;
  for (const auto& [unit, best] : compute) {
    roofs.compute.push_back({unit, best.path, best.rate});
    const auto whole = all_compute.find(unit);
    scaled = scaled || whole == all_compute.end() || whole->second.rate != best.rate;
  }
  for (const auto& [level, best] : memory) {
    roofs.memory.push_back({level, best.path, best.rate, level == kMemory ? 0 : best.capacity});
  }
  std::stable_sort(roofs.compute.begin(), roofs.compute.end(), [](const auto& a, const auto& b) {
    return a.flops_per_second > b.flops_per_second;
  });
  // By size, not by speed: a level that measured slower than the next larger one is still nearer.
  std::stable_sort(roofs.memory.begin(), roofs.memory.end(), [](const auto& a, const auto& b) {
    const auto size = [](const MemoryRoof& roof) {
      return roof.level == kMemory ? INT64_MAX : roof.capacity_bytes;
    };
    return size(a) < size(b);
  });
  // What a larger level delivers a smaller one does too: a dip is a flaw of the measurement.
  for (std::size_t i = roofs.memory.size(); i-- > 1;) {
    MemoryRoof& nearer = roofs.memory[i - 1];
    nearer.bytes_per_second = std::max(nearer.bytes_per_second, roofs.memory[i].bytes_per_second);
  }
  roofs.scope = scope_text(device, scaled, threads);
  if (std::any_of(ceilings.begin(), ceilings.end(), [&](const Ceiling& ceiling) {
        return ceiling.device == device && ceiling.lower_bound;
      })) {
    roofs.scope += ", lower bounds (other programs were running)";
  }
  roofs.links = links_of(ceilings);
  roofs.latency_seconds = latency_of(ceilings, device, threads);
  return roofs;
}

}  // namespace ridgeline
