#pragma once

// The lines of a trace file: events as kineto writes them.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "measure/profile/trace_tracks.h"

namespace ridgeline {

// A JSON string with its quotes; bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string json_string(std::string_view text);
// Microseconds with three decimals: "1234.567".
[[nodiscard]] std::string microseconds(std::int64_t nanoseconds);

// Names of processes and tracks, and their order on the screen.
[[nodiscard]] std::vector<std::string> metadata_lines(const TraceTracks& tracks);
// Steps, runtime calls, kernels, …: what took time.
[[nodiscard]] std::vector<std::string> span_lines(const Profile& profile,
                                                  const TraceTracks& tracks);
// Arrows from a runtime call to the first thing that it started on the device, and only where that
// began no earlier by the clocks.
[[nodiscard]] std::vector<std::string> flow_lines(const TraceTracks& tracks);
// Telemetry, and the bytes alive at the steps.
[[nodiscard]] std::vector<std::string> counter_lines(const Profile& profile,
                                                     const TraceTracks& tracks);
// The recording's beginning and end.
[[nodiscard]] std::vector<std::string> window_lines(const TraceTracks& tracks);

}  // namespace ridgeline
