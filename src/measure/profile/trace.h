#pragma once

// A profile as a trace file in the schema of PyTorch's profiler (kineto), which Perfetto,
// chrome://tracing and HolisticTraceAnalysis read.

#include <cstdint>
#include <optional>
#include <string>

#include "devices/device.h"
#include "measure/profile/profile.h"

namespace ridgeline {

struct TraceDetails {
  std::int64_t process = 0;    // id of the process that was profiled
  std::string name;            // of the trace: its file
  std::optional<GpuInfo> gpu;  // what the device tells of itself, where it is one
};

// One event a line. The telemetry's readings and the profile's events count from the same moment.
[[nodiscard]] std::string trace_json(const Profile& profile, const TraceDetails& details);

// A profile of this process; gzip where the name ends in .gz. The file is there whole or not at
// all. Throws a failure when it cannot be written.
void write_trace(const Profile& profile, const std::string& path);

}  // namespace ridgeline
