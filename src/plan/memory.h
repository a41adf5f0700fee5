#pragma once

#include <span>
#include <vector>

#include "plan/plan.h"

namespace ridgeline {

// Arenas hand out memory in units of a cache line, which is also the alignment kernels rely on.
inline constexpr std::int64_t kAlignment = 64;
[[nodiscard]] constexpr std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Lets steps whose kernels may run beside others do so, until the first step that touches what they
// write, or writes what they read.
void set_steps_beside(Plan& plan);

// Lets outputs overwrite inputs that are needed no more.
void join_in_place(Plan& plan);

// Finds each form's lifetime, then offsets in one arena such that nothing alive overlaps.
void plan_memory(Plan& plan);

// Bytes alive at each step, by role: the memory timeline. Every entry has kRoles numbers.
[[nodiscard]] std::vector<std::array<std::int64_t, kRoles>> live_bytes(const Plan& plan);

}  // namespace ridgeline
