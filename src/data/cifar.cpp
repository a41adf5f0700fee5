#include "data/cifar.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "data/file.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPixels = 3 * 32 * 32;

struct Kind {
  std::string_view name;
  std::size_t label_bytes;  // the last one is the label
  std::int32_t classes;
};
constexpr Kind kCifar10 = {"CIFAR-10", 1, 10}, kCifar100 = {"CIFAR-100", 2, 100};

std::size_t record_bytes(const Kind& kind) { return kind.label_bytes + kPixels; }

bool labels_fit(std::span<const std::uint8_t> bytes, const Kind& kind) {
  for (std::size_t at = kind.label_bytes - 1; at < bytes.size(); at += record_bytes(kind)) {
    if (bytes[at] >= kind.classes) return false;
  }
  return true;
}

Dataset empty_dataset(const Kind& kind) {
  Dataset data;
  data.channels = 3;
  data.height = data.width = 32;
  data.classes = kind.classes;
  return data;
}

void append(Dataset& data, const fs::path& path, std::span<const std::uint8_t> bytes,
            const Kind& kind) {
  const std::size_t record = record_bytes(kind);
  if (bytes.empty() || bytes.size() % record != 0) {
    bad_input(
        "{}: {} bytes are not a whole number of {} records of {} bytes; the file is truncated or "
        "of another kind",
        path.string(), bytes.size(), kind.name, record);
  }
  for (std::size_t at = 0; at < bytes.size(); at += record) {
    const std::uint8_t label = bytes[at + kind.label_bytes - 1];
    if (label >= kind.classes) {
      bad_input("{}: label {} of record {} is outside the {} classes of {}", path.string(), label,
                at / record, kind.classes, kind.name);
    }
    data.labels.push_back(label);
    const auto pixels = bytes.subspan(at + kind.label_bytes, kPixels);
    data.pixels.insert(data.pixels.end(), pixels.begin(), pixels.end());
  }
}

void append(Dataset& data, const fs::path& path, const Kind& kind) {
  append(data, path, read_file(path), kind);
}

// One name a line; kept only when there is one for each class.
void read_names(Dataset& data, const fs::path& path) {
  if (!is_there(path)) return;
  std::vector<std::string> names;
  std::string name;
  for (const std::uint8_t byte : read_file(path)) {
    if (byte == '\n') {
      if (!name.empty()) names.push_back(std::move(name));
      name.clear();
    } else if (byte != '\r') {
      name += static_cast<char>(byte);
    }
  }
  if (!name.empty()) names.push_back(std::move(name));
  if (names.size() == static_cast<std::size_t>(data.classes)) data.class_names = std::move(names);
}

}  // namespace

std::optional<fs::path> find_cifar(const fs::path& folder) {
  for (const fs::path& place :
       {folder, folder / "cifar-10-batches-bin", folder / "cifar-100-binary"}) {
    if (is_there(place / "data_batch_1.bin")) return place;
    if (is_there(place / "train.bin") && is_there(place / "test.bin")) return place;
  }
  return std::nullopt;
}

Split read_cifar_folder(const fs::path& folder) {
  const bool ten = is_there(folder / "data_batch_1.bin");
  const Kind& kind = ten ? kCifar10 : kCifar100;
  Split split{empty_dataset(kind), empty_dataset(kind)};
  if (ten) {
    // Fewer than five batches are a smaller set, but not with a gap.
    int last = 5;
    while (last > 1 && !is_there(folder / fmt::format("data_batch_{}.bin", last))) --last;
    for (int i = 1; i <= last; ++i) {
      append(split.train, folder / fmt::format("data_batch_{}.bin", i), kind);
    }
    if (is_there(folder / "test_batch.bin")) append(split.test, folder / "test_batch.bin", kind);
    read_names(split.train, folder / "batches.meta.txt");
  } else {
    append(split.train, folder / "train.bin", kind);
    append(split.test, folder / "test.bin", kind);
    read_names(split.train, folder / "fine_label_names.txt");
  }
  return split;
}

Dataset read_cifar_file(const fs::path& path) {
  const std::vector<std::uint8_t> bytes = read_file(path);
  const bool ten = bytes.size() % record_bytes(kCifar10) == 0;
  const bool hundred = bytes.size() % record_bytes(kCifar100) == 0;
  if (bytes.empty() || (!ten && !hundred)) {
    bad_input(
        "{}: {} bytes are not a whole number of CIFAR-10 records ({} bytes) or CIFAR-100 records "
        "({} bytes)",
        path.string(), bytes.size(), record_bytes(kCifar10), record_bytes(kCifar100));
  }
  const Kind& kind = ten && (!hundred || labels_fit(bytes, kCifar10)) ? kCifar10 : kCifar100;
  Dataset data = empty_dataset(kind);
  append(data, path, bytes, kind);
  return data;
}

}  // namespace ridgeline
