#include "train/zip.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/error.h"

namespace ridgeline {
namespace {

constexpr std::uint32_t kEntrySignature = 0x04034B50, kDirectorySignature = 0x02014B50,
                        kEndSignature = 0x06054B50, kEnd64Signature = 0x06064B50,
                        kLocatorSignature = 0x07064B50;
constexpr std::uint64_t kEndSize = 22, kLocatorSize = 20, kEnd64Size = 56, kEntrySize = 30,
                        kDirectoryEntrySize = 46;
constexpr std::uint64_t kLongestComment = 0xFFFF;
constexpr std::uint32_t kIn64 = 0xFFFFFFFF;  // the number stands in the zip64 part
constexpr std::uint16_t kZip64Part = 1, kStored = 0, kDeflated = 8, kEncrypted = 1;
constexpr std::uint64_t kMostInflation = 64;
constexpr std::uint64_t kSmallInflation = std::uint64_t{1} << 20;

std::uint32_t checksum_of(std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace

template <typename T>
T ZipArchive::number(std::uint64_t at) const {
  if (at > bytes_.size() || bytes_.size() - at < sizeof(T)) {
    bad_input("{}: broken zip archive: it ends too early", where_);
  }
  T value;
  std::memcpy(&value, bytes_.data() + at, sizeof(T));
  return value;
}

ZipArchive::ZipArchive(std::span<const std::byte> bytes, std::string where)
    : bytes_(bytes), where_(std::move(where)) {
  read_directory();
}

// The list of entries stands at the end, before a comment of any length.
void ZipArchive::read_directory() {
  std::optional<std::uint64_t> end;
  if (bytes_.size() >= kEndSize) {
    const std::uint64_t last = bytes_.size() - kEndSize;
    const std::uint64_t first = last - std::min(last, kLongestComment);
    for (std::uint64_t at = last + 1; at-- > first && !end;) {
      if (number<std::uint32_t>(at) == kEndSignature) end = at;
    }
  }
  if (!end) {
    bad_input(
        "{}: broken zip archive: the list of entries at its end is missing; is the file "
        "truncated?",
        where_);
  }
  std::uint64_t count = number<std::uint16_t>(*end + 10);
  std::uint64_t at = number<std::uint32_t>(*end + 16);
  const bool has_locator =
      *end >= kLocatorSize && number<std::uint32_t>(*end - kLocatorSize) == kLocatorSignature;
  if (has_locator) {
    const auto end64 = number<std::uint64_t>(*end - kLocatorSize + 8);
    if (end64 > bytes_.size() || bytes_.size() - end64 < kEnd64Size ||
        number<std::uint32_t>(end64) != kEnd64Signature) {
      bad_input("{}: broken zip archive: its zip64 part is missing", where_);
    }
    count = number<std::uint64_t>(end64 + 32);
    at = number<std::uint64_t>(end64 + 48);
  }
  if (count > bytes_.size() / kDirectoryEntrySize) {
    bad_input("{}: broken zip archive: {} entries cannot be in {} bytes", where_, count,
              bytes_.size());
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string name;
    const Entry entry = read_entry(at, name);
    if (!entries_.emplace(name, entry).second) {
      bad_input("{}: broken zip archive: two entries are named '{}'", where_, name);
    }
  }
}

ZipArchive::Entry ZipArchive::read_entry(std::uint64_t& at, std::string& name) const {
  if (number<std::uint32_t>(at) != kDirectorySignature) {
    bad_input("{}: broken zip archive: the list of entries is damaged", where_);
  }
  Entry entry;
  if ((number<std::uint16_t>(at + 8) & kEncrypted) != 0) {
    bad_input("{}: the zip archive is encrypted", where_);
  }
  entry.method = number<std::uint16_t>(at + 10);
  entry.checksum = number<std::uint32_t>(at + 16);
  entry.packed = number<std::uint32_t>(at + 20);
  entry.size = number<std::uint32_t>(at + 24);
  const std::uint64_t name_size = number<std::uint16_t>(at + 28),
                      extra_size = number<std::uint16_t>(at + 30),
                      comment_size = number<std::uint16_t>(at + 32);
  entry.header = number<std::uint32_t>(at + 42);
  at += kDirectoryEntrySize;
  if (name_size + extra_size + comment_size > bytes_.size() - at) {
    bad_input("{}: broken zip archive: it ends too early", where_);
  }
  name.assign(reinterpret_cast<const char*>(bytes_.data()) + at, name_size);
  read_zip64(bytes_.subspan(at + name_size, extra_size), entry);
  at += name_size + extra_size + comment_size;
  return entry;
}

// Numbers above 4 GiB stand, in this order, in an extra part, only those that are needed.
void ZipArchive::read_zip64(std::span<const std::byte> extra, Entry& entry) const {
  while (extra.size() >= 4) {
    std::uint16_t kind = 0, size = 0;
    std::memcpy(&kind, extra.data(), sizeof(kind));
    std::memcpy(&size, extra.data() + 2, sizeof(size));
    if (size > extra.size() - 4) return;
    if (kind == kZip64Part) {
      std::span<const std::byte> part = extra.subspan(4, size);
      for (std::uint64_t* number : {&entry.size, &entry.packed, &entry.header}) {
        if (*number != kIn64) continue;
        if (part.size() < 8) bad_input("{}: broken zip archive: a short zip64 part", where_);
        std::memcpy(number, part.data(), 8);
        part = part.subspan(8);
      }
      return;
    }
    extra = extra.subspan(4 + std::size_t{size});
  }
}

std::span<const std::byte> ZipArchive::read(std::string_view name, std::vector<std::byte>& room) {
  const auto found = entries_.find(name);
  if (found == entries_.end()) bad_input("{}: has no entry '{}'", where_, name);
  const Entry& entry = found->second;
  if (entry.header > bytes_.size() || number<std::uint32_t>(entry.header) != kEntrySignature) {
    bad_input("{}: broken zip archive: entry '{}' is not where the list says", where_, name);
  }
  // Name and extra part here may differ in length from those in the list.
  const std::uint64_t begin = entry.header + kEntrySize + number<std::uint16_t>(entry.header + 26) +
                              number<std::uint16_t>(entry.header + 28);
  if (begin > bytes_.size() || entry.packed > bytes_.size() - begin) {
    bad_input("{}: broken zip archive: entry '{}' is truncated", where_, name);
  }
  std::span<const std::byte> contents = bytes_.subspan(begin, entry.packed);
  if (entry.method == kDeflated) {
    room = inflated(contents, entry, name);
    contents = room;
  } else if (entry.method != kStored) {
    bad_input("{}: entry '{}' is packed by method {}; stored and deflated ones are read", where_,
              name, entry.method);
  } else if (entry.size != entry.packed) {
    bad_input("{}: broken zip archive: entry '{}' has two sizes", where_, name);
  }
  if (checksum_of(contents) != entry.checksum) {
    bad_input("{}: entry '{}' fails its checksum; download the file again", where_, name);
  }
  return contents;
}

std::vector<std::byte> ZipArchive::inflated(std::span<const std::byte> packed, const Entry& entry,
                                            std::string_view name) {
  const std::uint64_t most = kSmallInflation + kMostInflation * bytes_.size();
  if (entry.size > most - inflated_) {
    bad_input("{}: entry '{}' would inflate to {} bytes, more than {} times the file", where_, name,
              entry.size, kMostInflation);
  }
  inflated_ += entry.size;
  // One byte more: zlib wants room even for nothing.
  std::vector<std::byte> plain(entry.size + 1);
  z_stream stream{};
  ensure(inflateInit2(&stream, -MAX_WBITS) == Z_OK, "{}: zlib could not start", where_);
  std::uint64_t taken = 0, given = 0;
  int status = Z_OK;
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 30;  // zlib counts in 32 bits
  while (status == Z_OK) {
    const std::uint64_t in = std::min<std::uint64_t>(packed.size() - taken, kPiece);
    const std::uint64_t out = std::min<std::uint64_t>(plain.size() - given, kPiece);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data() + taken));
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = reinterpret_cast<Bytef*>(plain.data() + given);
    stream.avail_out = static_cast<uInt>(out);
    status = inflate(&stream, Z_NO_FLUSH);
    taken += in - stream.avail_in;
    given += out - stream.avail_out;
  }
  inflateEnd(&stream);
  if (status != Z_STREAM_END || given != entry.size) {
    bad_input("{}: broken zip archive: entry '{}' does not inflate to its {} bytes", where_, name,
              entry.size);
  }
  plain.resize(entry.size);
  return plain;
}

}  // namespace ridgeline
