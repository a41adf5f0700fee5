#include "data/file.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/error.h"

namespace ridgeline {
namespace {

using Bytes = std::vector<std::uint8_t>;

// zlib counts in 32 bits; larger buffers are handed over in pieces.
constexpr std::size_t kPiece = std::size_t{1} << 30;

Bytes read_raw(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    bad_input("{}: is a folder; a file was expected", path.string());
  }
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rb"));
  if (!file) bad_input("{}: cannot be opened: {}", path.string(), std::strerror(errno));
  const std::uintmax_t size = std::filesystem::file_size(path, ignored);
  Bytes bytes(ignored ? 0 : static_cast<std::size_t>(size));
  std::size_t filled = std::fread(bytes.data(), 1, bytes.size(), file.get());
  // The rest of what has no size of its own: a pipe, or a file that grew.
  for (;;) {
    std::uint8_t more[4096];
    const std::size_t got = std::fread(more, 1, sizeof(more), file.get());
    if (got == 0) break;
    bytes.resize(filled);
    bytes.insert(bytes.end(), more, more + got);
    filled += got;
  }
  if (std::ferror(file.get()) != 0) {
    bad_input("{}: cannot be read: {}", path.string(), std::strerror(errno));
  }
  bytes.resize(filled);
  return bytes;
}

class Inflater {
 public:
  explicit Inflater(const std::filesystem::path& path) : path_(path) {
    constexpr int kGzipWindow = 15 + 16;  // the largest window, with gzip's header and checksum
    ensure(inflateInit2(&stream_, kGzipWindow) == Z_OK, "{}: zlib could not start", path_.string());
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  Bytes run(const Bytes& packed) {
    Bytes plain(expected_size(packed));
    std::size_t taken = 0, written = 0;
    while (taken < packed.size()) {
      one_member(packed, taken, plain, written);
      inflateReset(&stream_);
    }
    plain.resize(written);
    return plain;
  }

 private:
  // gzip ends with the size modulo 2^32: a hint, not trusted far beyond what images reach. Where
  // more comes out, the room grows with it.
  static std::size_t expected_size(const Bytes& packed) {
    if (packed.size() < 18) return 64;
    std::size_t hint = 0;
    for (std::size_t i = 1; i <= 4; ++i) hint = hint << 8 | packed[packed.size() - i];
    constexpr std::size_t kUsualRatio = 16;
    return std::clamp<std::size_t>(hint, 64, packed.size() * kUsualRatio);
  }

  void one_member(const Bytes& packed, std::size_t& taken, Bytes& plain, std::size_t& written) {
    for (;;) {
      const std::size_t in = std::min(packed.size() - taken, kPiece);
      const std::size_t out = std::min(plain.size() - written, kPiece);
      stream_.next_in = const_cast<Bytef*>(packed.data() + taken);
      stream_.avail_in = static_cast<uInt>(in);
      stream_.next_out = plain.data() + written;
      stream_.avail_out = static_cast<uInt>(out);
      const int status = inflate(&stream_, Z_NO_FLUSH);
      taken += in - stream_.avail_in;
      written += out - stream_.avail_out;
      if (status == Z_STREAM_END) return;
      if (status != Z_OK && status != Z_BUF_ERROR) {
        bad_input("{}: corrupt gzip data near byte {} of {}: {}; download the file again",
                  path_.string(), taken, packed.size(),
                  stream_.msg != nullptr ? stream_.msg : "zlib gives no reason");
      }
      if (written == plain.size()) {
        plain.resize(plain.size() * 2);
      } else if (taken == packed.size()) {
        bad_input(
            "{}: truncated gzip data: the file ends after {} bytes, in the middle of the "
            "compressed stream; download the file again",
            path_.string(), packed.size());
      }
    }
  }

  std::filesystem::path path_;
  z_stream stream_{};
};

}  // namespace

std::vector<std::uint8_t> read_file(const std::filesystem::path& path) {
  Bytes bytes = read_raw(path);
  const bool gzip = bytes.size() >= 2 && bytes[0] == 0x1F && bytes[1] == 0x8B;
  if (gzip) return Inflater(path).run(bytes);
  if (path.extension() == ".gz") {
    bad_input("{}: is not gzip data although its name says so: it {}", path.string(),
              bytes.empty()
                  ? std::string("is empty")
                  : fmt::format("starts with byte 0x{:02x}, gzip starts with 0x1f 0x8b", bytes[0]));
  }
  return bytes;
}

bool is_there(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

}  // namespace ridgeline
