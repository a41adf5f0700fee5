#include "data/pack.h"

#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <limits>
#include <memory>
#include <numeric>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/utf8.h"
#include "data/pack_format.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;
namespace format = pack_format;
using Field = format::Field;

constexpr std::uint32_t kLargestSide = 65536;

// A pack in memory. The file stays where it is: pages are read when images are asked for.
class PackFile {
 public:
  explicit PackFile(const fs::path& path) : file_(path) {
    if (file_.bytes().empty()) bad_input("{}: is empty", path.string());
  }
  [[nodiscard]] std::span<const std::uint8_t> bytes() const {
    return {reinterpret_cast<const std::uint8_t*>(file_.bytes().data()), file_.bytes().size()};
  }

 private:
  MappedFile file_;
};

class PackImages final : public ImageSource {
 public:
  explicit PackImages(const fs::path& path)
      : path_(path.string()),
        file_(path),
        index_(parse_pack(file_.bytes(), path_)),
        tested_(std::make_unique<std::atomic<bool>[]>(index_.records.size())) {}

  [[nodiscard]] const PackIndex& index() const { return index_; }

  [[nodiscard]] StoredImage fetch(std::int32_t number, std::vector<std::uint8_t>&) const override {
    const auto at = static_cast<std::size_t>(number);
    const PackRecord& record = index_.records[at];
    const auto bytes = file_.bytes().subspan(record.offset, record.bytes);
    if (!tested_[at].load(std::memory_order_relaxed)) {
      if (format::checksum(bytes) != record.checksum) {
        bad_input("{}: its checksum is wrong: the pack is damaged; make it again", name(number));
      }
      tested_[at].store(true, std::memory_order_relaxed);
    }
    return {.bytes = bytes,
            .decoded = index_.kind == PackKind::decoded,
            .channels = index_.channels,
            .height = index_.height,
            .width = index_.width};
  }

  [[nodiscard]] std::string name(std::int32_t number) const override {
    return fmt::format("{}: record {}", path_, number);
  }

 private:
  std::string path_;
  PackFile file_;
  PackIndex index_;
  std::unique_ptr<std::atomic<bool>[]> tested_;
};

// Takes the strings at the end of the index.
std::string take_text(std::span<const std::uint8_t>& rest, const std::string& name) {
  const auto refuse = [&] { bad_input("{}: damaged pack: the names end too early", name); };
  if (rest.size() < 4) refuse();
  const auto length = format::get<std::uint32_t>(rest, 0);
  rest = rest.subspan(4);
  if (length > rest.size()) refuse();
  const std::string text(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(length));
  rest = rest.subspan(length);
  return valid_utf8(text);
}

void check_header(std::span<const std::uint8_t> file, const std::string& name) {
  const std::string_view magic = format::kMagic;
  if (file.size() < magic.size() || !std::equal(magic.begin(), magic.end(), file.begin())) {
    bad_input("{}: is not a pack: it does not begin with {}", name, magic);
  }
  if (file.size() < format::kHeaderBytes) {
    bad_input("{}: truncated pack: {} bytes, less than a header", name, file.size());
  }
  const auto version = format::get<std::uint32_t>(file, Field::version);
  if (version != format::kVersion) {
    bad_input("{}: a pack of version {}; this program reads version {}: make the pack again", name,
              version, format::kVersion);
  }
  const auto header = file.first(format::kHeaderBytes);
  if (format::checksum(header.first(format::kHeaderChecksum)) !=
      format::get<std::uint32_t>(header, format::kHeaderChecksum)) {
    bad_input("{}: damaged pack: the checksum of the header is wrong", name);
  }
}

// The part of the file that is the index, with its place and checksum proven.
std::span<const std::uint8_t> index_of(std::span<const std::uint8_t> file,
                                       const std::string& name) {
  const auto offset = format::get<std::uint64_t>(file, Field::index_offset);
  const auto bytes = format::get<std::uint64_t>(file, Field::index_bytes);
  if (offset < format::kHeaderBytes || offset > file.size() || file.size() - offset != bytes) {
    bad_input(
        "{}: truncated or damaged pack: its index of {} bytes should begin at {} and end the "
        "file of {} bytes",
        name, bytes, offset, file.size());
  }
  const auto index = file.subspan(offset);
  if (format::checksum(index) != format::get<std::uint32_t>(file, Field::index_checksum)) {
    bad_input("{}: damaged pack: the checksum of the index is wrong", name);
  }
  return index;
}

void read_sizes(PackIndex& pack, std::span<const std::uint8_t> file, std::size_t index_bytes,
                const std::string& name) {
  const auto number = [&](Field field) { return format::get<std::uint32_t>(file, field); };
  const std::uint32_t kind = number(Field::kind), channels = number(Field::channels);
  const std::uint32_t height = number(Field::height), width = number(Field::width);
  if (kind > 1) bad_input("{}: damaged pack: unknown kind {}", name, kind);
  if ((channels != 1 && channels != 3) || height < 1 || width < 1 || height > kLargestSide ||
      width > kLargestSide) {
    bad_input("{}: damaged pack: images of {}x{}x{}", name, channels, height, width);
  }
  pack.kind = static_cast<PackKind>(kind);
  pack.channels = static_cast<int>(channels);
  pack.height = static_cast<int>(height);
  pack.width = static_cast<int>(width);
  pack.photos = number(Field::photos) != 0;
  const auto train = format::get<std::uint64_t>(file, Field::train_count);
  const auto test = format::get<std::uint64_t>(file, Field::test_count);
  const std::uint64_t most = std::min<std::uint64_t>(index_bytes / format::kRecordBytes,
                                                     std::numeric_limits<std::int32_t>::max());
  if (train < 1 || train > most || test > most - train) {
    bad_input("{}: damaged pack: {} + {} images do not fit an index of {} bytes", name, train, test,
              index_bytes);
  }
  pack.train_count = static_cast<std::int64_t>(train);
  pack.test_count = static_cast<std::int64_t>(test);
  const std::uint32_t classes = number(Field::classes), names = number(Field::class_names);
  if (classes < 1 || classes > std::uint32_t{std::numeric_limits<std::int32_t>::max()} ||
      (names != 0 && names != classes) || names > index_bytes / 4) {
    bad_input("{}: damaged pack: {} classes with {} names", name, classes, names);
  }
  pack.classes = static_cast<std::int32_t>(classes);
  pack.class_names.resize(names);
}

void read_records(PackIndex& pack, std::span<const std::uint8_t> index, std::uint64_t end,
                  const std::string& name) {
  const std::uint64_t pixels = std::uint64_t{static_cast<unsigned>(pack.channels)} *
                               static_cast<unsigned>(pack.height) *
                               static_cast<unsigned>(pack.width);
  pack.records.reserve(static_cast<std::size_t>(pack.train_count + pack.test_count));
  for (std::int64_t i = 0; i < pack.train_count + pack.test_count; ++i) {
    const std::size_t at = static_cast<std::size_t>(i) * format::kRecordBytes;
    const PackRecord record{.offset = format::get<std::uint64_t>(index, at),
                            .bytes = format::get<std::uint32_t>(index, at + 8),
                            .checksum = format::get<std::uint32_t>(index, at + 12),
                            .label = format::get<std::int32_t>(index, at + 16)};
    if (record.offset < format::kHeaderBytes || record.offset > end ||
        record.bytes > end - record.offset) {
      bad_input("{}: damaged pack: record {} is outside the file", name, i);
    }
    if (pack.kind == PackKind::decoded && record.bytes != pixels) {
      bad_input("{}: damaged pack: record {} has {} bytes, an image of {}x{}x{} has {}", name, i,
                record.bytes, pack.channels, pack.height, pack.width, pixels);
    }
    if (record.label < 0 || record.label >= pack.classes) {
      bad_input("{}: damaged pack: label {} of record {} is outside the {} classes", name,
                record.label, i, pack.classes);
    }
    pack.records.push_back(record);
  }
}

}  // namespace

std::uint32_t pack_format::checksum(std::span<const std::uint8_t> bytes) {
  return static_cast<std::uint32_t>(crc32_z(0, bytes.data(), bytes.size()));
}

bool is_pack(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string start(format::kMagic.size(), '\0');
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  return file && start == format::kMagic;
}

PackIndex parse_pack(std::span<const std::uint8_t> file, const std::string& name) {
  check_header(file, name);
  const std::span<const std::uint8_t> index = index_of(file, name);
  PackIndex pack;
  read_sizes(pack, file, index.size(), name);
  read_records(pack, index, file.size() - index.size(), name);
  auto rest = index.subspan(pack.records.size() * format::kRecordBytes);
  pack.name = take_text(rest, name);
  for (std::string& text : pack.class_names) text = take_text(rest, name);
  if (!rest.empty()) bad_input("{}: damaged pack: {} bytes after the names", name, rest.size());
  return pack;
}

Split open_pack(const fs::path& path, FrameSize size) {
  const auto images = std::make_shared<PackImages>(path);
  const PackIndex& pack = images->index();
  const auto part = [&](std::int64_t first, std::int64_t count) {
    Dataset data;
    data.name = pack.name;
    data.channels = pack.channels;
    data.height = size.height > 0 ? size.height : pack.height;
    data.width = size.width > 0 ? size.width : pack.width;
    data.classes = pack.classes;
    data.class_names = pack.class_names;
    data.photos = pack.photos;
    data.images = images;
    data.image_numbers.resize(static_cast<std::size_t>(count));
    std::iota(data.image_numbers.begin(), data.image_numbers.end(),
              static_cast<std::int32_t>(first));
    for (const std::int32_t number : data.image_numbers) {
      data.labels.push_back(pack.records[static_cast<std::size_t>(number)].label);
    }
    return data;
  };
  return {part(0, pack.train_count), part(pack.train_count, pack.test_count)};
}

}  // namespace ridgeline
