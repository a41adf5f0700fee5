#pragma once

// The JSON half of a checkpoint.

#include <string>

#include "train/checkpoint.h"

namespace ridgeline {

[[nodiscard]] std::string checkpoint_text(const Checkpoint& checkpoint);
// Fills all but folder and tensors. Bad_input naming `where` for anything else than such a text.
[[nodiscard]] Checkpoint parse_checkpoint(const std::string& text, const std::string& where);

}  // namespace ridgeline
