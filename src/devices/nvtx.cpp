#include "devices/nvtx.h"

#include <cstdlib>

#include "base/error.h"

namespace ridgeline {

bool nvtx_wanted() {
  static const bool wanted = [] {
    const char* value = std::getenv("RIDGELINE_NVTX");
    return value != nullptr && *value != '\0' && std::string(value) != "0";
  }();
  if (!wanted) return false;
  if (const std::string reason = nvtx_unavailable(); !reason.empty()) {
    bad_input("RIDGELINE_NVTX asks for marks, and {}; unset it", reason);
  }
  return true;
}

}  // namespace ridgeline
