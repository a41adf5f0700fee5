#pragma once

#include <cstdint>
#include <span>

namespace ridgeline {

// The orientation (1 to 8) in an EXIF block, which begins with its TIFF header. 1 where the block
// has none or makes no sense.
[[nodiscard]] int exif_orientation(std::span<const std::uint8_t> tiff);

}  // namespace ridgeline
