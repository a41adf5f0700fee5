#pragma once

// What a tool that watches a device writes down, before it is joined to a plan: plain records in
// the tool's own time, of which some may be lost.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "measure/profile/profile.h"

namespace ridgeline {

// Something that the device did.
struct DeviceRecord {
  Activity activity = Activity::kernel;  // or copy, fill
  std::string name;
  std::uint64_t begin = 0, end = 0;  // nanoseconds; both 0: the tool could not tell
  std::uint32_t stream = 0;
  std::uint32_t correlation = 0;  // of the call that started it
  std::uint64_t node = 0;         // of a recording, the same in every replay; 0: none
  std::optional<std::int64_t> bytes;
};

// A call of the runtime or of the driver below it. Libraries call either.
struct CallRecord {
  std::string name;
  std::uint64_t begin = 0, end = 0;
  std::uint32_t thread = 0;
  std::uint32_t correlation = 0;
  bool failed = false;
};

// Where a call was made: while the launches of a step were queued, or recorded for replays.
struct CallOrigin {
  std::int64_t step = -1;
  bool recorded = false;
};

struct DeviceRecords {
  std::vector<DeviceRecord> activities;
  std::vector<CallRecord> calls;
  std::map<std::uint32_t, CallOrigin> origins;  // by correlation
  std::uint64_t dropped = 0;                    // records for which the tool had no room
};

// What each step of a plan put into its recording: kernels, copies and fills, in any order.
using RecordedSteps = std::vector<std::vector<Activity>>;

}  // namespace ridgeline
