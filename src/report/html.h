#pragma once

// The report as one HTML file that asks nothing of any network: the Document as JSON, its figures
// as SVG, the page's scripts and styles. All text of the JSON reaches the page through textContent,
// that of the figures is escaped; a content security policy lets only the script that this program
// wrote run, and nothing load.

#include <string>

#include "report/document.h"

namespace ridgeline::report {

[[nodiscard]] std::string html_page(const Document& document);

// The Document as the page reads it: ids made unique, what is not finite left out as null, and
// safe inside a <script> element.
[[nodiscard]] std::string page_json(const Document& document);

}  // namespace ridgeline::report
