#pragma once

// MD5 and SHA-256, by libcrypto: the checksums under which data sets are published.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace ridgeline {

enum class DigestKind : std::uint8_t { md5, sha256 };

// In hexadecimal digits.
[[nodiscard]] std::string digest_of(DigestKind kind, std::span<const std::uint8_t> bytes);
[[nodiscard]] std::string digest_of_file(DigestKind kind, const std::filesystem::path& path);

}  // namespace ridgeline
