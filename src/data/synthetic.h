#pragma once

#include <cstdint>

#include "data/dataset.h"

namespace ridgeline {

// Images made from a seed, for measuring and testing without files: each class has a pattern of
// grey cells, each sample is its class's pattern under noise. A network learns it within an epoch.
struct SyntheticOptions {
  std::int64_t channels = 1, height = 28, width = 28;
  std::int32_t classes = 10;
  std::int64_t count = 60000;       // training samples
  std::int64_t test_count = 10000;  // drawn from the same patterns
  std::uint64_t seed = 0;
};

// A pure function of the options. Labels go round the classes, so every class is equally frequent.
[[nodiscard]] Split make_synthetic(const SyntheticOptions& options);

}  // namespace ridgeline
