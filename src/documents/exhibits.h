#pragma once

// Tables and figures of a store as a JSON document, figures drawn as SVG.

#include <filesystem>
#include <string>
#include <vector>

namespace ridgeline {

struct ExhibitsRequest {
  std::filesystem::path store;
  std::vector<std::string> names;  // of tables and figures that a study can ask for; empty: those
                                   // of the report
  std::vector<std::string> runs;   // as commands name them; empty: all
};

// Throws bad_input for unknown names and runs, and for a store without complete runs.
[[nodiscard]] std::string exhibits_json(const ExhibitsRequest& request);

}  // namespace ridgeline
