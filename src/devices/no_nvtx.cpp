// What stands for NVTX in a build without it.

#include "devices/nvtx.h"

namespace ridgeline {

std::string nvtx_unavailable() {
  return "this build has no NVTX: no CUDA toolkit with nvtx3/nvToolsExt.h was found when it was "
         "configured";
}

void nvtx_push(const std::string&) {}

void nvtx_pop() {}

}  // namespace ridgeline
