#pragma once

// What of a profile is written down beside its steps and numbers.

#include <vector>

#include "measure/profile/profile.h"

namespace ridgeline {

// What lives in memory, step by step; owners that never have anything are left out.
[[nodiscard]] std::vector<LiveEntry> live_entries(const Profile& profile);

// All that happened in the iteration of middle length, times since its beginning. Parts of parallel
// loops only where there are few threads. Empty when no iteration was watched.
[[nodiscard]] std::vector<TimelineEntry> middle_iteration(const Profile& profile);

}  // namespace ridgeline
