#pragma once

// Comparisons as JSON documents.

#include <string>
#include <vector>

#include "analysis/compare/stored.h"

namespace ridgeline {

[[nodiscard]] std::string comparison_json(const RunComparison& comparison,
                                          const VerdictOptions& options);
// Several runs, each against the first of the same work.
[[nodiscard]] std::string comparisons_json(const std::vector<RunComparison>& comparisons,
                                           const VerdictOptions& options);

}  // namespace ridgeline
