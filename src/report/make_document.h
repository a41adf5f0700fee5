#pragma once

// The report of a store: all that it says, before it is written in any format.

#include <filesystem>
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
// Of a store's file. Throws bad_input where it has no complete runs.
[[nodiscard]] Document stored_document(const std::filesystem::path& store,
                                       const DocumentOptions& options);

}  // namespace ridgeline::report
