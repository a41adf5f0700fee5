#pragma once

// Points and roofs of stored runs: what `ridgeline roofline` does.

#include <string>
#include <vector>

#include "analysis/roofline/stored.h"
#include "lab/listener.h"

namespace ridgeline {

struct RooflineRequest {
  std::string store = "ridgeline.db";
  std::vector<std::string> runs = {};  // as the command names them; empty: those of the last bench
};

// Ceilings of this machine that the store lacks are measured and stored first. Throws bad_input for
// runs that there are not.
[[nodiscard]] StoredRooflines run_roofline(const RooflineRequest& request, CallListener& listener);

}  // namespace ridgeline
