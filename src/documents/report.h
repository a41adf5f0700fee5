#pragma once

// A written report as a JSON document.

#include <cstdint>
#include <string>
#include <vector>

#include "report/files.h"

namespace ridgeline {

[[nodiscard]] std::int64_t total_bytes(const std::vector<report::WrittenFile>& files);
[[nodiscard]] std::string written_json(const report::WrittenReport& report,
                                       const std::string& folder);

}  // namespace ridgeline
