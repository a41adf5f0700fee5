#pragma once

// An audit as a Document: the report's writers show it.

#include <string>

#include "audit/audit.h"
#include "report/document.h"

namespace ridgeline::audit {

[[nodiscard]] report::Document audit_document(const Audit& audit, const std::string& title);

// "lines 3, 7, 12 and 97 more"; empty: the finding is of the whole table.
[[nodiscard]] std::string lines_text(const FileFinding& finding);

// "1 row", "1,200 rows", "no rows"
[[nodiscard]] std::string counted(std::size_t count, const char* word);
// "2 errors, 1 warning, no notes"
[[nodiscard]] std::string count_of_findings(std::size_t errors, std::size_t warnings,
                                            std::size_t notes);

}  // namespace ridgeline::audit
