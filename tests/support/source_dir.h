#pragma once

#include <filesystem>

namespace ridgeline::testing {

// The folder of the sources: some tests read docs/ and src/, and run scripts.
[[nodiscard]] std::filesystem::path source_dir();

}  // namespace ridgeline::testing
