#pragma once

// safetensors: eight bytes of header length, a JSON header (name -> dtype, shape, data_offsets;
// "__metadata__" -> text by text), then the elements of all tensors without gaps.

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "train/weight_file.h"

namespace ridgeline {

// Whether a file may be one, told by its first nine bytes.
[[nodiscard]] bool is_safetensors(std::span<const std::byte> bytes);

// Everything is checked: sizes, dtypes, shapes, offsets, gaps, overlaps, names used twice.
// Bad_input says what is wrong.
[[nodiscard]] WeightFile read_safetensors(std::shared_ptr<const MappedFile> mapping);

// Written beside and renamed: a failure leaves the old file as it was. REQUIRES: names differ, and
// each tensor's bytes fit its dims and type.
void write_safetensors(const std::filesystem::path& path, std::span<const WeightTensor> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace ridgeline
