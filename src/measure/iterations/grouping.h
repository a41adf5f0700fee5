#pragma once

// Which candidates are measured side by side: as many as fit into memory together, those that do
// the same work first of all.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "measure/iterations/measured_step.h"

namespace ridgeline {

struct MemoryGroups {
  std::vector<std::vector<std::size_t>> groups;
  std::string note;  // why not all are side by side; empty: they are
};

// `available` tells the bytes that a device can still give. REQUIRES: subjects of the same work are
// neighbours.
[[nodiscard]] MemoryGroups group_by_memory(
    std::span<const Subject> subjects,
    const std::function<std::int64_t(const std::string& device)>& available);

}  // namespace ridgeline
