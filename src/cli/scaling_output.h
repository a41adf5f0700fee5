#pragma once

// What `bench --ranks` tells of scaling.

#include <string>

#include "lab/bench.h"

namespace ridgeline::cli {

// A table with what its columns mean, and an empty line; nothing where there is one number of
// ranks.
[[nodiscard]] std::string scaling_text(const BenchReport& report);

}  // namespace ridgeline::cli
