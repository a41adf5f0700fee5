#pragma once

// Collects the profile of a step of the engine: some iterations without an observer, as many that
// are watched, and once more as many that are not, so that what the watching costs is known and a
// drift of the machine does not look like it.

#include <functional>
#include <vector>

#include "measure/iterations/measured_step.h"
#include "measure/profile/memory_timeline.h"
#include "measure/profile/profile.h"

namespace ridgeline {

struct CollectOptions {
  std::int64_t iterations = 5;  // that are watched, at least 1
  bool counters = false;        // the processor's own counters, in iterations of their own
  double telemetry_hz = 0.0;    // 0: no sensors are read
  // Asked after each iteration, with those done and those to be done: false ends the collecting.
  std::function<bool(std::int64_t done, std::int64_t total)> go_on;
};

struct Collected {
  Profile profile;
  Preparation preparation;
  StepDetails details;          // of the plan and the memory; without times of steps
  std::vector<Sample> samples;  // of what was not watched
  MemoryTimeline memory;        // planned
  // When it failed or was interrupted after the first watched iteration, the profile is of those
  // before.
  RunStatus status = RunStatus::complete;
  std::string error;
};

// Prepares the step, and closes it in the end. Throws what goes wrong before the first watched
// iteration is done; bad_input for a peer's step and for less than one iteration.
[[nodiscard]] Collected collect_profile(MeasuredStep& step, const CollectOptions& options);

// Watching that costs more than this share of an unwatched iteration is worth a warning.
inline constexpr double kMostOverhead = 0.10;
[[nodiscard]] double overhead_share(const Profile& profile);

}  // namespace ridgeline
