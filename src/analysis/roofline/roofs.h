#pragma once

// From measured ceilings to the roofs that steps are compared with. All in FLOP/s, bytes/s, seconds
// and FLOP/byte.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/records.h"

namespace ridgeline {

struct ComputeRoof {
  std::string unit;  // as in StepTime: "fp32", "tensor bf16", "amx bf16"
  std::string path;  // the fastest: "avx512", "tensor"
  double flops_per_second = 0.0;
};

struct MemoryRoof {
  std::string level;  // "L1", "L2", "L3", "memory"
  std::string path;   // the fastest: "read"
  double bytes_per_second = 0.0;
  std::int64_t capacity_bytes = 0;  // of all that the threads can use; 0 for memory: no limit
};

// The least time of an all-reduce of so many bytes.
struct LinkRoof {
  std::string unit;  // as in StepTime: "4 ranks", "4 GPU ranks"
  std::int64_t bytes = 0;
  double seconds = 0.0;
};
[[nodiscard]] std::string link_unit(int ranks, std::string_view device_kind);

struct Roofs {
  std::string device;
  int threads = 0;                   // 0: the whole device
  std::string scope;                 // how the roofs came about: "all cores", "1 of the cores"
  std::vector<ComputeRoof> compute;  // fastest first
  std::vector<MemoryRoof> memory;    // fastest first; main memory last
  std::vector<LinkRoof> links;       // of each unit, the smallest message first
  // The shortest time from one step to the next: a node of a recorded graph or a launch on a
  // graphics processor, waking the threads on a CPU. Nothing: not measured.
  std::optional<double> latency_seconds;

  [[nodiscard]] bool empty() const { return compute.empty() || memory.empty(); }
  [[nodiscard]] const ComputeRoof* find_compute(const std::string& unit) const;
  // Between the sizes that were measured; nothing where none were.
  [[nodiscard]] std::optional<double> all_reduce_seconds(const std::string& unit,
                                                         double bytes) const;
  // The fastest of the units that matrix products in a precision may use.
  [[nodiscard]] const ComputeRoof* find_precision(const std::string& precision) const;
  // The fastest level that could hold so many bytes. REQUIRES: there are levels.
  [[nodiscard]] const MemoryRoof& level_for(std::int64_t working_set_bytes) const;
};

// The unit that a ceiling of computing is the roof of.
[[nodiscard]] std::string unit_of(const Ceiling& ceiling);

// The roofs of a device for runs with so many threads (0: all of it). Of the repeats of a ceiling
// the best counts, of its paths the fastest: a roof is what can be reached at all. With fewer
// threads than cores the roof is that of one core times the threads, capped by that of all cores,
// and private caches count once for each thread.
[[nodiscard]] Roofs roofs_of(std::span<const Ceiling> ceilings, const std::string& device,
                             int threads);

// The intensity in FLOP/byte where a memory roof meets a compute roof.
[[nodiscard]] inline double ridge_point(const ComputeRoof& compute, const MemoryRoof& memory) {
  return compute.flops_per_second / memory.bytes_per_second;
}

}  // namespace ridgeline
