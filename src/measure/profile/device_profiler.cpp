#include "measure/profile/device_profiler.h"

#include "base/error.h"
#include "measure/profile/cupti_profiler.h"

namespace ridgeline {

DeviceProfilerOrReason make_device_profiler(Session& session, Session::PlanId plan) {
  const Device& device = session.device();
  if (device.kind() == "cuda") return make_cupti_profiler(session, plan);
  return {nullptr,
          fmt::format("{} computes when the host tells it to and keeps no records of its own",
                      device.name())};
}

}  // namespace ridgeline
