#pragma once

// A profile as a trace file in the schema of PyTorch's profiler (kineto), which Perfetto,
// chrome://tracing and HolisticTraceAnalysis read.

#include <cstdint>
#include <optional>
#include <string>

#include "devices/device.h"
#include "measure/profile/profile.h"
#include "measure/profile/trace_tracks.h"
#include "ranks/ranks.h"

namespace ridgeline {

struct TraceDetails {
  TraceProcess process;        // that was profiled
  std::string name;            // of the trace: its file
  std::optional<GpuInfo> gpu;  // what the device tells of itself, where it is one
};

// One event a line. The telemetry's readings and the profile's events count from the same moment.
// `others`: the events of other ranks.
[[nodiscard]] std::string trace_json(const Profile& profile, const TraceDetails& details,
                                     const std::string& others = "");
// Its events alone.
[[nodiscard]] std::string trace_events(const Profile& profile, const TraceProcess& process);

// A profile of this process; gzip where the name ends in .gz. The file is there whole or not at
// all. Throws a failure when it cannot be written.
void write_trace(const Profile& profile, const std::string& path);
// The profiles of all ranks in one trace, a process for each, by their machines' clocks. Rank 0
// writes. REQUIRES: all ranks call it.
void write_trace(const Profile& profile, const std::string& path, Ranks& ranks);

}  // namespace ridgeline
