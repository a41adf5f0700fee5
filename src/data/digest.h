#pragma once

// MD5 (RFC 1321) and SHA-256 (FIPS 180-4), for the checksums under which datasets are published.

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace ridgeline {

enum class DigestKind : std::uint8_t { md5, sha256 };

class Digest {
 public:
  explicit Digest(DigestKind kind);
  void add(std::span<const std::uint8_t> bytes);
  // In hexadecimal. The digest takes nothing more afterwards.
  [[nodiscard]] std::string text();

 private:
  void block(const std::uint8_t* bytes);

  DigestKind kind_;
  std::array<std::uint32_t, 8> state_;
  std::array<std::uint8_t, 64> pending_{};
  std::uint64_t bytes_ = 0;
};

[[nodiscard]] std::string digest_of(DigestKind kind, std::span<const std::uint8_t> bytes);
[[nodiscard]] std::string digest_of_file(DigestKind kind, const std::filesystem::path& path);

}  // namespace ridgeline
