#pragma once

// What a device with a queue does, by its own clock: kernels, copies, fills and the runtime's calls
// that started them, each joined to the step of the plan that it belongs to.

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "measure/profile/profile.h"
#include "plan/session.h"

namespace ridgeline {

struct DeviceActivity {
  // runtime, kernel, copy and fill; seconds since the profile began. The collector knows the
  // iterations and fills them in.
  std::vector<ProfileEvent> events;
  std::vector<Missing> missing;  // records that the runtime lost, launches without a record
};

// Calls come from the thread that runs the session, in this order: start, iterations of the plan
// (each waited for), stop. While it is started the profiler is the session's observer: a recording
// is made anew in the first run after start(), so that the profiler sees which step each of its
// launches belongs to. That first iteration is not kept by the collector.
class DeviceProfiler {
 public:
  virtual ~DeviceProfiler() = default;
  // REQUIRES: the device is idle. `zero` is when the profile began: events count from there.
  // Throws a failure with the reason when the device cannot be watched (another profiler is
  // attached, no permission); nothing is left behind then.
  virtual void start(std::chrono::steady_clock::time_point zero) = 0;
  // REQUIRES: the device is idle.
  [[nodiscard]] virtual DeviceActivity stop() = 0;
};

// A profiler of a plan, or why there is none: the CPU is no device with a queue, the build has no
// CUPTI. REQUIRES: the session outlives it and is prepared.
struct DeviceProfilerOrReason {
  std::unique_ptr<DeviceProfiler> profiler;
  std::string reason;  // where there is none
};
[[nodiscard]] DeviceProfilerOrReason make_device_profiler(Session& session, Session::PlanId plan);

}  // namespace ridgeline
