#pragma once

// The model zoo as a JSON document.

#include <cstdint>
#include <string>

#include "models/model.h"

namespace ridgeline {

// With its own settings, image size and classes.
[[nodiscard]] std::int64_t parameters_of(const ModelInfo& model);
[[nodiscard]] std::string models_json();

}  // namespace ridgeline
