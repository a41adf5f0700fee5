#pragma once

#include <cstdint>

namespace ridgeline::testing {

// Every allocation of the test binary's C++ code is counted.
[[nodiscard]] std::int64_t allocation_count();
[[nodiscard]] std::int64_t allocated_bytes();  // asked for so far, whether or not given back

}  // namespace ridgeline::testing
