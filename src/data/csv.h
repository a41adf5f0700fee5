#pragma once

#include <cstdint>
#include <filesystem>

#include "data/dataset.h"

namespace ridgeline {

// Kaggle's digit file: `label,pixel0,pixel1,...`, one square grey image a row, whole numbers from 0
// to 255; plain or gzip. The header line may be absent. Errors are bad_input with file, line and
// column. Name and source are left to the caller.
[[nodiscard]] Dataset read_csv(const std::filesystem::path& path, std::int32_t classes);

}  // namespace ridgeline
