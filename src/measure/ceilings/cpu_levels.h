#pragma once

// The memory levels of a CPU, as working sets for the measurements.

#include <cstdint>
#include <string>
#include <vector>

#include "measure/machine/environment.h"

namespace ridgeline::ceilings {

struct MemoryLevel {
  std::string name;                // "L1", "L2", "L3", "memory"
  std::int64_t capacity = 0;       // bytes that the threads have of it together
  std::vector<std::int64_t> sets;  // bytes of one thread's working set: the fastest counts
};

// Levels in order for so many threads, each on a core of its own. `memory_bytes` as in
// CeilingEffort. A level that the system does not tell of is left out.
[[nodiscard]] std::vector<MemoryLevel> memory_levels(const Environment& env, int threads,
                                                     std::int64_t memory_bytes);

}  // namespace ridgeline::ceilings
