#pragma once

#include <string>
#include <string_view>

namespace ridgeline {

// The bytes of a .gz file that holds `bytes`; the same bytes give the same file, always.
[[nodiscard]] std::string gzipped(std::string_view bytes);

}  // namespace ridgeline
