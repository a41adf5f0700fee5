#pragma once

// Tables and whole reports as LaTeX. A table is for \input into any paper that uses the packages
// booktabs, array and longtable: a float, or from page to page where it is long, in several parts
// where it is too wide. Nothing is made smaller than \scriptsize. The report is an article of its
// own.

#include <string>
#include <string_view>

#include "report/contents.h"

namespace ridgeline::report {

[[nodiscard]] std::string latex_table(const Table& table);
// The same without the comment in front, placed as the letters say: "htbp", "H".
[[nodiscard]] std::string latex_float(const Table& table, const char* place);
[[nodiscard]] std::string latex_caption(const std::string& title, const std::string& caption);
[[nodiscard]] std::string latex_document(const Document& document, const PictureFiles& pictures);

// Text that LaTeX sets as it is: its own signs escaped, and what pdfLaTeX's usual fonts lack either
// composed or named by its number.
[[nodiscard]] std::string latex_text(std::string_view text);

}  // namespace ridgeline::report
