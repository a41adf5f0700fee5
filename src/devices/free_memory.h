#pragma once

// How much memory this process may still take, as the kernel's files tell it.

#include <cstddef>
#include <filesystem>
#include <limits>

namespace ridgeline {

inline constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

// What a control group (version 2) may take in all, and what is left of that. Memory that only
// caches files counts as left: the kernel gives it up.
struct GroupMemory {
  std::size_t limit = kNoLimit, left = kNoLimit;
};
// Of this process's own group, and of all groups above it, the one that leaves the least. `root` is
// "/" but in tests.
[[nodiscard]] GroupMemory tightest_group(const std::filesystem::path& root);

// The least that the system, its control groups and the limit of addresses leave.
[[nodiscard]] std::size_t free_host_memory();

}  // namespace ridgeline
