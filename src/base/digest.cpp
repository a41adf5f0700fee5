#include "base/digest.h"

#include <openssl/evp.h>

#include <array>

#include "base/error.h"
#include "base/mapped_file.h"

namespace ridgeline {

std::string digest_of(DigestKind kind, std::span<const std::uint8_t> bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  const EVP_MD* method = kind == DigestKind::md5 ? EVP_md5() : EVP_sha256();
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, method, nullptr) != 1) {
    fail("libcrypto cannot compute {}", kind == DigestKind::md5 ? "MD5" : "SHA-256");
  }
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

std::string digest_of_file(DigestKind kind, const std::filesystem::path& path) {
  const MappedFile file(path);
  return digest_of(
      kind, {reinterpret_cast<const std::uint8_t*>(file.bytes().data()), file.bytes().size()});
}

}  // namespace ridgeline
