#pragma once

// Tables and whole reports as Markdown, as GitHub shows it.

#include <string>

#include "report/contents.h"

namespace ridgeline::report {

[[nodiscard]] std::string markdown_table(const Table& table);
[[nodiscard]] std::string markdown_document(const Document& document, const PictureFiles& pictures);

// Text that Markdown and HTML show as it is.
[[nodiscard]] std::string markdown_text(std::string_view text);

}  // namespace ridgeline::report
