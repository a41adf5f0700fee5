#pragma once

// Tables and whole reports as LaTeX. A table is one float for \input into any paper that uses the
// packages booktabs, array, longtable and graphicx; the report is an article of its own.

#include <string>
#include <string_view>

#include "report/contents.h"

namespace ridgeline::report {

[[nodiscard]] std::string latex_table(const Table& table);
[[nodiscard]] std::string latex_document(const Document& document, const PictureFiles& pictures);

// Text that LaTeX sets as it is: its own signs escaped, and what pdfLaTeX's usual fonts lack either
// composed or named by its number.
[[nodiscard]] std::string latex_text(std::string_view text);

}  // namespace ridgeline::report
