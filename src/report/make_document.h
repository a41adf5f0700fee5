#pragma once

// The report of a store: all that it says, before it is written in any format.

#include <string>
#include <vector>

#include "report/data.h"
#include "report/document.h"

namespace ridgeline::report {

struct DocumentOptions {
  std::string title;                 // empty: one is made
  std::vector<std::string> studies;  // to show, by name; empty: all. Unknown ones are bad_input
};

[[nodiscard]] Document make_document(const Data& data, const DocumentOptions& options);

}  // namespace ridgeline::report
