#pragma once

// Files of results for the tests of the audit: healthy ones with the noise that real machines have,
// and the same with one error planted. A seed decides everything.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline::testing {

// One row for each iteration of some configurations: times with a few percent of noise and single
// outliers, in one of several styles (separator, units, names of columns).
[[nodiscard]] std::string healthy_iterations(std::uint64_t seed);
// A table as in a publication: a row for each model, batch and device.
[[nodiscard]] std::string healthy_summary(std::uint64_t seed);
// One row for each epoch of some trainings.
[[nodiscard]] std::string healthy_epochs(std::uint64_t seed);

// An error of method, planted in a file that is healthy otherwise.
struct PlantedError {
  const char* name;
  const char* check;  // that must find it
  std::string (*file)(std::uint64_t seed);
};
[[nodiscard]] std::span<const PlantedError> planted_errors();

}  // namespace ridgeline::testing
