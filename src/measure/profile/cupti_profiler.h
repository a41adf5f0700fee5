#pragma once

#include "measure/profile/device_profiler.h"

namespace ridgeline {

// A profiler of a plan on a CUDA device, or why there is none.
[[nodiscard]] DeviceProfilerOrReason make_cupti_profiler(Session& session, Session::PlanId plan);

}  // namespace ridgeline
