#include "data/exif.h"

#include <cstddef>

namespace ridgeline {
namespace {

constexpr std::uint32_t kOrientationTag = 0x0112;
constexpr std::uint32_t kShort = 3;

class Tiff {
 public:
  explicit Tiff(std::span<const std::uint8_t> bytes)
      : bytes_(bytes), little_(bytes.size() > 1 && bytes[0] == 'I') {}

  // A number of 2 or 4 bytes; false beyond the end.
  [[nodiscard]] bool number(std::size_t at, std::size_t size, std::uint32_t& value) const {
    if (at > bytes_.size() || bytes_.size() - at < size) return false;
    value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      value = value << 8 | bytes_[little_ ? at + size - 1 - i : at + i];
    }
    return true;
  }

 private:
  std::span<const std::uint8_t> bytes_;
  bool little_;
};

}  // namespace

int exif_orientation(std::span<const std::uint8_t> bytes) {
  const bool known = bytes.size() >= 8 &&
                     ((bytes[0] == 'I' && bytes[1] == 'I') || (bytes[0] == 'M' && bytes[1] == 'M'));
  if (!known) return 1;
  const Tiff tiff(bytes);
  std::uint32_t magic = 0, directory = 0, entries = 0;
  if (!tiff.number(2, 2, magic) || magic != 42 || !tiff.number(4, 4, directory)) return 1;
  if (!tiff.number(directory, 2, entries)) return 1;
  for (std::uint32_t entry = 0; entry < entries; ++entry) {
    const std::size_t at = std::size_t{directory} + 2 + std::size_t{12} * entry;
    std::uint32_t tag = 0, type = 0, value = 0;
    if (!tiff.number(at, 2, tag) || !tiff.number(at + 2, 2, type)) return 1;
    if (tag != kOrientationTag || type != kShort) continue;
    if (!tiff.number(at + 8, 2, value)) return 1;
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

}  // namespace ridgeline
