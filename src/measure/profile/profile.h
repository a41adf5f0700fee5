#pragma once

// Where the time of training iterations goes: what was collected, before anything is computed from
// it. Tables, breakdowns, traces and differences are views of a Profile.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "store/records.h"

namespace ridgeline {

enum class Activity {
  iteration,  // a whole iteration, on the host
  step,       // a step of the plan, as the host sees it
  body,       // a thread's part of a parallel loop
  data_wait,  // the host waits for a batch
  upload,     // the host hands a batch over
  runtime,    // a call of the device's runtime
  kernel,     // on the device
  copy,
  fill,
  exchange,  // a step that waits for other processes beside the computing
};

struct ProfileEvent {
  Activity activity = Activity::step;
  std::string name;   // "layer1.0.conv1 conv2d+…", "cudaGraphLaunch", a kernel's own name
  std::string track;  // "host", "thread 1", "stream 7"
  double begin = 0.0, end = 0.0;      // seconds since the profile began
  std::int64_t iteration = -1;        // from 0; -1: none
  std::int64_t step = -1;             // of the plan; -1: none, or not known
  std::uint64_t correlation = 0;      // joins a runtime call to what it started; 0: none
  std::optional<std::int64_t> bytes;  // of copies and fills
};

// The mean of an iteration, in seconds. Each moment belongs to one part, so that they add up to the
// wall time: what the device computes comes first, then what it copies, then what the host does.
struct TimeBreakdown {
  double kernel = 0.0, copy = 0.0, runtime = 0.0, data = 0.0, cpu = 0.0, idle = 0.0;
  [[nodiscard]] double total() const { return kernel + copy + runtime + data + cpu + idle; }
};

// Bytes alive while a step of the plan runs, by owner.
struct LiveBytes {
  std::int64_t step = 0;
  std::array<std::int64_t, kRoles> by_role{};
};

// Something that could not be had, and why: shown as "n/a".
struct Missing {
  std::string what, reason;
};

// What the processor counted while a step ran, all threads together, for one iteration.
struct StepCounters {
  std::int64_t step = 0;
  std::optional<double> instructions, cycles, cache_misses;
};

// Times are means over the middle iterations (breakdown.h): like medians, they leave out the odd
// one, and unlike medians they add up.
struct Profile {
  Work work;
  Executor executor;
  std::vector<StepTime> steps;       // of the plan
  std::vector<ProfileEvent> events;  // in order of their beginning
  std::int64_t iterations = 0;
  std::int64_t began_unix_nanoseconds = 0;  // when the events' clock was 0; 0: not known
  // An iteration's wall time, watched and not.
  double profiled_seconds = 0.0, unprofiled_seconds = 0.0;
  TimeBreakdown breakdown;
  // Of it, what belongs to no step of the plan: with the steps it adds up to profiled_seconds.
  TimeBreakdown outside;
  std::vector<StepCounters> counters;  // one for each step; empty: not asked for, or not available
  std::vector<LiveBytes> memory;       // planned, one for each step
  std::vector<Reading> readings;       // telemetry during the iterations
  std::vector<Missing> missing;
  std::vector<Finding> findings;
};

}  // namespace ridgeline
