// What stands for the profiler of a graphics processor in a build without CUDA.

#include "lab/profile/device_profiler.h"

namespace ridgeline {

DeviceProfilerOrReason make_device_profiler(Session& session, Session::PlanId /*plan*/) {
  return {nullptr, session.device().name() + " has no profiler in this build"};
}

}  // namespace ridgeline
