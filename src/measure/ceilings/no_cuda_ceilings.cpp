// What stands for the ceilings of graphics processors in a build without CUDA.

#include "base/error.h"
#include "measure/ceilings/ceilings.h"

namespace ridgeline::ceilings {

std::vector<Ceiling> measure_cuda(Device& device, const CeilingProgress&, const CeilingEffort&) {
  bad_input("the ceilings of '{}' cannot be measured: {}", device.name(), cuda_unavailable());
}

}  // namespace ridgeline::ceilings
