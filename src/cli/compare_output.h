#pragma once

// How a comparison is shown.

#include <string>
#include <vector>

#include "documents/compare.h"

namespace ridgeline::cli {

// The titles of the table of --all.
[[nodiscard]] std::vector<std::string> compare_columns();

[[nodiscard]] std::string comparison_text(const RunComparison& comparison,
                                          const VerdictOptions& options);

// Several runs, each against the first of the same work.
[[nodiscard]] std::string comparisons_text(const std::vector<RunComparison>& comparisons,
                                           const VerdictOptions& options);

}  // namespace ridgeline::cli
