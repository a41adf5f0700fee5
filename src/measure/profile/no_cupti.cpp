// What stands for CUPTI in a build without it.

#include "measure/profile/cupti_profiler.h"

namespace ridgeline {

DeviceProfilerOrReason make_cupti_profiler(Session&, Session::PlanId) {
  return {nullptr,
          "this build has no CUPTI: no CUDA toolkit with cupti.h was found when it was configured"};
}

}  // namespace ridgeline
