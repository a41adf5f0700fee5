#pragma once

// The bytes of a pack's header and index; for reading and writing packs only.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline::pack_format {

inline constexpr std::string_view kMagic = "RDGLPACK";
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::size_t kHeaderBytes = 128;
inline constexpr std::size_t kHeaderChecksum = kHeaderBytes - 4;  // its place
inline constexpr std::size_t kRecordBytes = 24;                   // in the index

// Places in the header.
enum Field : std::size_t {
  version = 8,
  kind = 12,
  channels = 16,
  height = 20,
  width = 24,
  classes = 28,
  train_count = 32,   // 8 bytes
  test_count = 40,    // 8 bytes
  index_offset = 48,  // 8 bytes
  index_bytes = 56,   // 8 bytes
  index_checksum = 64,
  class_names = 68,  // 0, or as many as classes
  photos = 72,
};

template <typename Number>
void put(std::span<std::uint8_t> bytes, std::size_t at, Number number) {
  for (std::size_t i = 0; i < sizeof(Number); ++i) {
    bytes[at + i] = static_cast<std::uint8_t>(static_cast<std::uint64_t>(number) >> (8 * i));
  }
}

template <typename Number>
void append(std::vector<std::uint8_t>& bytes, Number number) {
  bytes.resize(bytes.size() + sizeof(Number));
  put(std::span(bytes), bytes.size() - sizeof(Number), number);
}

template <typename Number>
[[nodiscard]] Number get(std::span<const std::uint8_t> bytes, std::size_t at) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i) {
    number |= std::uint64_t{bytes[at + i]} << (8 * i);
  }
  return static_cast<Number>(number);
}

[[nodiscard]] std::uint32_t checksum(std::span<const std::uint8_t> bytes);

}  // namespace ridgeline::pack_format
