#pragma once

// Dimensions of a tensor in a file, which may be anything.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace ridgeline {

// "64x3x7x7"; "scalar" for no dimensions.
[[nodiscard]] std::string dims_text(std::span<const std::int64_t> dims);

// Elements of dims that may come from anywhere; nothing when one is negative or the bytes of so
// many elements of eight bytes cannot be counted.
[[nodiscard]] std::optional<std::int64_t> checked_elements(std::span<const std::int64_t> dims);

}  // namespace ridgeline
