#pragma once

// Where the events of a profile lie in a trace: process, thread and whole nanoseconds.

#include <cstdint>
#include <string>
#include <vector>

#include "measure/profile/profile.h"

namespace ridgeline {

struct TraceTrack {
  std::int64_t pid = 0, tid = 0;
  std::string name;
  bool on_device = false;
  std::int64_t stream = -1;  // of a device's track, where its name tells it
};

struct TraceSpan {
  const ProfileEvent* event = nullptr;
  std::int64_t begin = 0, end = 0;  // nanoseconds from the trace's beginning
  std::size_t track = 0;
};

// Whose trace it is.
struct TraceProcess {
  std::int64_t host_pid = 0;
  // Of several ranks whose traces become one: processes then have numbers of their own.
  int rank = 0, ranks = 1;
  std::int64_t earlier = 0;  // nanoseconds by which the trace of all begins before this one's own
};

struct TraceTracks {
  std::int64_t host_pid = 0, device_pid = 0;
  int rank = 0, ranks = 1;
  std::vector<TraceTrack> tracks;
  std::vector<TraceSpan> spans;  // track by track, in order of time, the enclosing one first
  // What profile seconds are in the trace: nanoseconds. The trace begins with its earliest event or
  // reading, or with the profile where that is earlier.
  std::int64_t beginning = 0;  // of the trace, on the profile's clock; never above 0
  std::int64_t last = 0;       // of the trace: when its last event ends

  [[nodiscard]] std::int64_t nanoseconds(double profile_seconds) const;
};

// As kineto does it: the host's process and threads have their ids, a device's activities the
// device's index and the stream. Spans of a track never overlap in part: on the host they nest, on
// a device they follow each other; what would not fit goes to a second lane of the track, with its
// times as they are. REQUIRES: all times are finite.
[[nodiscard]] TraceTracks trace_tracks(const Profile& profile, const TraceProcess& process);

// 1 of "cuda:1"; 0 where a device has no number.
[[nodiscard]] std::int64_t device_index(const std::string& device);

[[nodiscard]] constexpr bool is_on_device(Activity activity) {
  return activity == Activity::kernel || activity == Activity::copy || activity == Activity::fill;
}

}  // namespace ridgeline
