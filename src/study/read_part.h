#pragma once

// [[part]] of a study's file.

#include <optional>

#include "base/toml_entry.h"
#include "study/part.h"

namespace ridgeline::study {

// Nothing where the part is not for this scale. Throws bad_input with the line.
[[nodiscard]] std::optional<Part> read_part(TomlEntry& entry, Scale scale);

}  // namespace ridgeline::study
