#pragma once

// Efficiencies as a file: src/predict/efficiencies.toml, which the program carries within itself,
// and what `ridgeline predict --learn` writes.

#include <string>
#include <string_view>
#include <vector>

#include "predict/check.h"

namespace ridgeline::predict {

// Throws bad_input with file, line and key of what is wrong.
[[nodiscard]] std::vector<Shipped> parse_efficiencies(std::string_view text,
                                                      const std::string& file);
// The program's own.
[[nodiscard]] std::vector<Shipped> shipped_efficiencies();

// What observations teach, one entry for each backend and family with at least two networks.
[[nodiscard]] std::vector<Shipped> learn_all(const std::vector<Observation>& seen,
                                             const std::string& source);
[[nodiscard]] std::string efficiencies_toml(const std::vector<Shipped>& all);

}  // namespace ridgeline::predict
