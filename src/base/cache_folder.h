#pragma once

#include <filesystem>

namespace ridgeline {

// Where results that may be lost are kept from run to run: $XDG_CACHE_HOME/ridgeline, or
// ~/.cache/ridgeline. Empty where neither variable is set.
[[nodiscard]] std::filesystem::path cache_folder();

}  // namespace ridgeline
