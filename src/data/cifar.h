#pragma once

// CIFAR-10 and CIFAR-100 in their binary form: records of one label byte (CIFAR-100: coarse and
// fine) and 3x32x32 pixels.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

#include "data/dataset.h"

namespace ridgeline {

// The folder itself, or the one inside it, that holds data_batch_1.bin ... data_batch_5.bin and
// test_batch.bin (CIFAR-10), or train.bin and test.bin (CIFAR-100); nothing where there is neither.
[[nodiscard]] std::optional<std::filesystem::path> find_cifar(const std::filesystem::path& folder);

// REQUIRES: a folder from find_cifar. Missing batches and wrong sizes are bad_input. Name and
// source are left to the caller.
[[nodiscard]] Split read_cifar_folder(const std::filesystem::path& folder);

// One .bin file: which of the two it is is told by its size and its labels.
[[nodiscard]] Dataset read_cifar_file(const std::filesystem::path& path);

}  // namespace ridgeline
