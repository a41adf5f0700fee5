#pragma once

// Files written by torch.save: since PyTorch 1.6 a zip archive with a pickle and one entry for each
// storage; before that several pickles in a row, the storages after them. Tensors are views on
// storages. A dict that holds the tensors under "state_dict" or "model" is unwrapped.

#include <memory>
#include <span>

#include "train/weight_file.h"

namespace ridgeline {

// Told by the first bytes.
[[nodiscard]] bool is_torch_zip(std::span<const std::byte> bytes);
[[nodiscard]] bool is_torch_legacy(std::span<const std::byte> bytes);

// Bad_input for broken files and for pickles that ask for anything but tensors.
[[nodiscard]] WeightFile read_torch_zip(std::shared_ptr<const MappedFile> mapping);
[[nodiscard]] WeightFile read_torch_legacy(std::shared_ptr<const MappedFile> mapping);

}  // namespace ridgeline
