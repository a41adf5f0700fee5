#pragma once

// What memory a plan has alive at each of its steps, and what lives where that is most. Planned
// bytes; the telemetry's measured ones are put beside them.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "measure/profile/profile.h"
#include "plan/plan.h"

namespace ridgeline {

[[nodiscard]] std::int64_t total_of(const LiveBytes& live);

// One for each step of the plan, in order. State lives through all of them, scratch memory from the
// first step that uses it to the last, a workspace while its own step runs.
[[nodiscard]] std::vector<LiveBytes> memory_timeline(const Plan& plan);

// Something that lies in memory: a value in one of its layouts, or a workspace.
struct LiveValue {
  std::string name;   // "conv1.weight", "layer1.0.conv1 workspace"
  std::string layer;  // of the op that makes it, or that it is a parameter of
  Role role = Role::activation;
  std::int64_t bytes = 0;                      // as the arenas count them
  std::int32_t first_step = 0, last_step = 0;  // while it lives
  bool operator==(const LiveValue&) const = default;
};

// All that lives at a step, largest first. REQUIRES: the plan has that step.
[[nodiscard]] std::vector<LiveValue> alive_at(const Plan& plan, std::int64_t step);

struct MemoryTimeline {
  struct Position {
    LiveBytes live;
    std::string layer, ops, phase;  // of the step
  };
  std::vector<Position> positions;  // one for each step
  std::int64_t peak_step = -1;      // the first of the fullest ones; -1: the plan has no steps
  std::int64_t peak_bytes = 0;
  std::vector<LiveValue> at_peak;  // all of it, largest first
  // Of the scratch arena: its size, and the most that is alive in it at once. What it has more are
  // gaps that the planner could not fill.
  std::int64_t state_bytes = 0, scratch_bytes = 0, scratch_live_bytes = 0;

  [[nodiscard]] std::int64_t gap_bytes() const { return scratch_bytes - scratch_live_bytes; }
  [[nodiscard]] std::vector<LiveBytes> live() const;
};
[[nodiscard]] MemoryTimeline timeline_of(const Plan& plan);

// Bytes that a sensor read meanwhile.
struct MeasuredMemory {
  std::string device, sensor;  // "cpu", "rss_bytes"
  double low = 0.0, high = 0.0;
  std::int64_t readings = 0;
};
// Of the sensors of resident memory and of the graphics processors' memory that were read.
[[nodiscard]] std::vector<MeasuredMemory> measured_memory(std::span<const Reading> readings);

// A bar for each stretch of the step, what lives at the peak (its `most` largest), the arenas, and
// what was measured. `stretches`: rows at most; each shows the fullest of its steps.
struct MemoryTextOptions {
  std::size_t stretches = 32, most = 12;
};
[[nodiscard]] std::string memory_timeline_text(const MemoryTimeline& timeline,
                                               std::span<const Reading> readings,
                                               const MemoryTextOptions& options = {});
// The same, whole, as a JSON object.
[[nodiscard]] std::string memory_timeline_json(const MemoryTimeline& timeline,
                                               std::span<const Reading> readings);

}  // namespace ridgeline
