#pragma once

#include <cstdint>
#include <string_view>

namespace ridgeline {

// FNV-1a: the same on every machine, so it may go into files and seeds.
[[nodiscard]] constexpr std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return hash;
}

}  // namespace ridgeline
