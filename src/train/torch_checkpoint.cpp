#include "train/torch_checkpoint.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "train/pickle.h"
#include "train/weight_file.h"
#include "train/zip.h"

namespace ridgeline {
namespace {

using Kind = PickleValue::Kind;

constexpr int kMostWrappings = 4;  // {"model": {"state_dict": ...}}
constexpr std::uint64_t kLargestPickle = std::uint64_t{1} << 26;
// Tensors that are no plain part of their storage are copied; in all this many times the file.
constexpr std::uint64_t kMostCopies = 4;

struct StorageType {
  std::string_view name;
  WeightType type;
};
constexpr std::array<StorageType, 10> kStorageTypes = {{{"DoubleStorage", WeightType::f64},
                                                        {"FloatStorage", WeightType::f32},
                                                        {"HalfStorage", WeightType::f16},
                                                        {"BFloat16Storage", WeightType::bf16},
                                                        {"LongStorage", WeightType::i64},
                                                        {"IntStorage", WeightType::i32},
                                                        {"ShortStorage", WeightType::i16},
                                                        {"CharStorage", WeightType::i8},
                                                        {"ByteStorage", WeightType::u8},
                                                        {"BoolStorage", WeightType::boolean}}};

// 0x1950a86a20f9469cfc6c as a pickle, after the protocol's number.
constexpr std::array<unsigned char, 13> kLegacyMagic = {0x8A, 0x0A, 0x6C, 0xFC, 0x9C, 0x46, 0xF9,
                                                        0x20, 0x6A, 0xA8, 0x50, 0x19, 0x2E};
constexpr std::int64_t kLegacyProtocol = 1001;

struct Storage {
  WeightType type = WeightType::f32;
  std::string_view key;
  std::int64_t elements = 0;
  std::int64_t view_offset = 0;  // elements into the storage of that key
};

// Finds the bytes of a storage.
using FindStorage = std::function<std::span<const std::byte>(const Storage&)>;

class TensorReader {
 public:
  TensorReader(const Pickle& pickle, WeightFile& file, FindStorage find)
      : pickle_(pickle), file_(file), where_(file.path.string()), find_(std::move(find)) {}

  void run() {
    const PickleValue* dict = &pickle_.top();
    for (int i = 0; i < kMostWrappings; ++i) {
      const PickleValue* inner = wrapped(*dict);
      if (inner == nullptr) break;
      dict = inner;
    }
    if (dict->kind != Kind::dict) bad_input("{}: has no dict of named tensors", where_);
    std::set<std::string_view> names;
    for (std::size_t i = 0; i + 1 < dict->items.size(); i += 2) {
      const PickleValue& name = at(dict->items[i]);
      const PickleValue& value = at(dict->items[i + 1]);
      if (value.kind != Kind::tensor) continue;
      if (name.kind != Kind::text) bad_input("{}: the name of a tensor is not text", where_);
      if (!names.insert(name.text).second) {
        bad_input("{}: tensor '{}' is there twice", where_, name.text);
      }
      file_.tensors.push_back(tensor(std::string(name.text), value));
    }
    if (file_.tensors.empty()) no_tensors(*dict);
  }

 private:
  [[nodiscard]] const PickleValue& at(PickleId id) const { return pickle_.value(id); }

  [[nodiscard]] const PickleValue* wrapped(const PickleValue& dict) const {
    if (dict.kind != Kind::dict) return nullptr;
    for (const char* key : {"state_dict", "model_state_dict", "model", "net"}) {
      for (std::size_t i = 0; i + 1 < dict.items.size(); i += 2) {
        const PickleValue &name = at(dict.items[i]), &value = at(dict.items[i + 1]);
        if (name.kind == Kind::text && name.text == key && value.kind == Kind::dict) return &value;
      }
    }
    return nullptr;
  }

  [[noreturn]] void no_tensors(const PickleValue& dict) const {
    std::vector<std::string_view> keys;
    for (std::size_t i = 0; i + 1 < dict.items.size() && keys.size() < 20; i += 2) {
      if (at(dict.items[i]).kind == Kind::text)
        keys.push_back(at(dict.items[i]).text.substr(0, 80));
    }
    bad_input("{}: has no named tensors; its keys are: {}", where_, joined(keys, ", "));
  }

  template <typename... Args>
  [[noreturn]] void wrong(const std::string& name, fmt::format_string<Args...> format,
                          Args&&... args) const {
    bad_input("{}: tensor '{}' {}", where_, name, fmt::format(format, std::forward<Args>(args)...));
  }

  [[nodiscard]] std::int64_t amount(const std::string& name, PickleId id, const char* what) const {
    const PickleValue& value = at(id);
    if (value.kind != Kind::integer || value.integer < 0) wrong(name, "has a broken {}", what);
    return value.integer;
  }

  [[nodiscard]] std::vector<std::int64_t> amounts(const std::string& name, PickleId id,
                                                  const char* what) const {
    const PickleValue& value = at(id);
    if (value.kind != Kind::tuple && value.kind != Kind::list) wrong(name, "has broken {}s", what);
    if (value.items.size() > kLargestRank) {
      wrong(name, "has {} dimensions; {} are allowed", value.items.size(), kLargestRank);
    }
    std::vector<std::int64_t> list;
    for (const PickleId item : value.items) list.push_back(amount(name, item, what));
    return list;
  }

  [[nodiscard]] Storage storage(const std::string& name, const PickleValue& value) const {
    if (value.kind != Kind::storage) wrong(name, "has no storage");
    const PickleValue &type = at(value.items[1]), &key = at(value.items[2]);
    if (key.kind != Kind::text) wrong(name, "has a storage without a key");
    Storage storage{.key = key.text, .elements = amount(name, value.items[4], "storage")};
    const auto known =
        std::find_if(kStorageTypes.begin(), kStorageTypes.end(),
                     [&](const StorageType& candidate) { return candidate.name == type.text; });
    if (type.kind != Kind::global || known == kStorageTypes.end()) {
      wrong(name, "has a storage of unknown type");
    }
    storage.type = known->type;
    // Storages that were part of another one, as PyTorch before 0.4 wrote them: key, offset, size.
    if (value.items.size() > 5 && at(value.items[5]).kind == Kind::tuple) {
      const PickleValue& view = at(value.items[5]);
      if (view.items.size() != 3) wrong(name, "has a broken view of a storage");
      storage.view_offset = amount(name, view.items[1], "view");
      const std::int64_t size = amount(name, view.items[2], "view");
      if (storage.view_offset > storage.elements || size > storage.elements - storage.view_offset) {
        wrong(name, "has a view beyond its storage");
      }
      storage.elements = size;
    }
    return storage;
  }

  WeightTensor tensor(std::string name, const PickleValue& value) {
    const Storage from = storage(name, at(value.items[0]));
    const std::int64_t offset = amount(name, value.items[1], "offset");
    WeightTensor made;
    made.type = from.type;
    made.dims = amounts(name, value.items[2], "size");
    const std::vector<std::int64_t> strides = amounts(name, value.items[3], "stride");
    const std::optional<std::int64_t> elements = checked_elements(made.dims);
    if (!elements) wrong(name, "of shape {} is too large", dims_text(made.dims));
    if (strides.size() != made.dims.size()) wrong(name, "has not one stride for each dimension");
    made.name = std::move(name);
    if (*elements == 0) return made;
    if (*elements > from.elements) {
      wrong(made.name,
            "of shape {} repeats the elements of a storage of {}: save a contiguous copy",
            dims_text(made.dims), from.elements);
    }
    std::int64_t last = offset;
    for (std::size_t axis = 0; axis < strides.size(); ++axis) {
      std::int64_t reach = 0;
      if (__builtin_mul_overflow(made.dims[axis] - 1, strides[axis], &reach) ||
          __builtin_add_overflow(last, reach, &last)) {
        wrong(made.name, "has strides that leave its storage");
      }
    }
    if (last >= from.elements) {
      wrong(made.name, "needs element {} of a storage that has {}", last, from.elements);
    }
    const std::size_t size = size_of(made.type);
    const std::span<const std::byte> bytes =
        find_(from).subspan(static_cast<std::size_t>(from.view_offset) * size,
                            static_cast<std::size_t>(from.elements) * size);
    const auto first = static_cast<std::size_t>(offset);
    const auto count = static_cast<std::size_t>(*elements);
    made.bytes = contiguous(made.dims, strides)
                     ? bytes.subspan(first * size, count * size)
                     : copied(made, strides, bytes.subspan(first * size), count);
    return made;
  }

  static bool contiguous(const std::vector<std::int64_t>& dims,
                         const std::vector<std::int64_t>& strides) {
    std::int64_t expected = 1;
    for (std::size_t axis = dims.size(); axis-- > 0;) {
      if (dims[axis] != 1 && strides[axis] != expected) return false;
      expected *= dims[axis];
    }
    return true;
  }

  std::span<const std::byte> copied(const WeightTensor& tensor,
                                    const std::vector<std::int64_t>& strides,
                                    std::span<const std::byte> from, std::size_t count) {
    const std::size_t size = size_of(tensor.type);
    copies_ += count * size;
    if (copies_ > kMostCopies * file_.mapping->bytes().size()) {
      wrong(tensor.name, "and others before it overlap each other too often");
    }
    std::vector<std::byte>& to = file_.owned.emplace_back(count * size);
    for (std::size_t i = 0; i < count; ++i) {
      std::size_t rest = i, at = 0;
      for (std::size_t axis = strides.size(); axis-- > 0;) {
        const auto dim = static_cast<std::size_t>(tensor.dims[axis]);
        at += rest % dim * static_cast<std::size_t>(strides[axis]);
        rest /= dim;
      }
      std::memcpy(to.data() + i * size, from.data() + at * size, size);
    }
    return to;
  }

  const Pickle& pickle_;
  WeightFile& file_;
  std::string where_;
  FindStorage find_;
  std::uint64_t copies_ = 0;
};

WeightFile begin(std::shared_ptr<const MappedFile> mapping, const char* format) {
  WeightFile file;
  file.path = mapping->path();
  file.format = format;
  file.mapping = std::move(mapping);
  return file;
}

// "archive/" of "archive/data.pkl".
std::string prefix_of(const ZipArchive& archive, const std::string& where) {
  for (const auto& [name, entry] : archive.entries()) {
    if (name == "data.pkl") return {};
    if (name.ends_with("/data.pkl")) return name.substr(0, name.size() - 8);
  }
  bad_input("{}: is a zip archive, but was not written by torch.save: it has no data.pkl", where);
}

}  // namespace

bool is_torch_zip(std::span<const std::byte> bytes) {
  return bytes.size() >= 4 && std::memcmp(bytes.data(), "PK\x03\x04", 4) == 0;
}

bool is_torch_legacy(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 + kLegacyMagic.size() && bytes[0] == std::byte{0x80} &&
         std::memcmp(bytes.data() + 2, kLegacyMagic.data(), kLegacyMagic.size()) == 0;
}

WeightFile read_torch_zip(std::shared_ptr<const MappedFile> mapping) {
  WeightFile file = begin(std::move(mapping), "PyTorch zip");
  const std::string where = file.path.string();
  ZipArchive archive(file.mapping->bytes(), where);
  const std::string prefix = prefix_of(archive, where);
  std::vector<std::byte> pickle_room, order_room;
  if (archive.entries().contains(prefix + "byteorder")) {
    const auto order = archive.read(prefix + "byteorder", order_room);
    if (order.size() != 6 || std::memcmp(order.data(), "little", 6) != 0) {
      bad_input("{}: was written on a big-endian machine", where);
    }
  }
  if (archive.entries().at(prefix + "data.pkl").size > kLargestPickle) {
    bad_input("{}: its data.pkl is larger than {} bytes", where, kLargestPickle);
  }
  const Pickle pickle = read_pickle(archive.read(prefix + "data.pkl", pickle_room), where);

  std::map<std::string, std::span<const std::byte>, std::less<>> storages;
  const auto find = [&](const Storage& storage) {
    std::string name = fmt::format("{}data/{}", prefix, storage.key);
    auto found = storages.find(name);
    if (found == storages.end()) {
      std::vector<std::byte> room;
      std::span<const std::byte> bytes = archive.read(name, room);
      if (!room.empty()) bytes = file.owned.emplace_back(std::move(room));
      found = storages.emplace(std::move(name), bytes).first;
    }
    const auto needed = static_cast<std::uint64_t>(storage.view_offset + storage.elements);
    if (found->second.size() / size_of(storage.type) < needed) {
      bad_input("{}: storage '{}' has {} bytes, too few for {} elements", where, storage.key,
                found->second.size(), needed);
    }
    return found->second;
  };
  TensorReader(pickle, file, find).run();
  return file;
}

WeightFile read_torch_legacy(std::shared_ptr<const MappedFile> mapping) {
  WeightFile file = begin(std::move(mapping), "PyTorch before 1.6");
  const std::string where = file.path.string();
  std::span<const std::byte> rest = file.mapping->bytes();
  const auto next = [&] {
    Pickle pickle = read_pickle(rest, where);
    rest = rest.subspan(pickle.size);
    return pickle;
  };
  (void)next();  // the magic number
  if (const Pickle protocol = next(); protocol.top().integer != kLegacyProtocol) {
    bad_input("{}: protocol {} is unknown; expected {}", where, protocol.top().integer,
              kLegacyProtocol);
  }
  const Pickle machine = next();
  const PickleValue& about = machine.top();
  for (std::size_t i = 0; i + 1 < about.items.size(); i += 2) {
    if (about.kind == Kind::dict && machine.value(about.items[i]).text == "little_endian" &&
        machine.value(about.items[i + 1]).integer == 0) {
      bad_input("{}: was written on a big-endian machine", where);
    }
  }
  const Pickle pickle = next();
  const Pickle keys = next();
  if (keys.top().kind != Kind::list) bad_input("{}: the list of storages is missing", where);

  // Each storage is a count of elements and the elements; only their users know the type.
  std::map<std::string_view, WeightType> types;
  for (const PickleValue& value : pickle.values) {
    if (value.kind != Kind::storage) continue;
    for (const StorageType& known : kStorageTypes) {
      if (pickle.value(value.items[1]).text != known.name) continue;
      types.emplace(pickle.value(value.items[2]).text, known.type);
    }
  }
  std::map<std::string_view, std::span<const std::byte>> storages;
  for (const PickleId id : keys.top().items) {
    const std::string_view key = keys.value(id).text;
    const auto type = types.find(key);
    if (type == types.end()) bad_input("{}: unknown type of storage '{}'", where, key);
    std::uint64_t count = 0;
    if (rest.size() < sizeof(count)) bad_input("{}: truncated before storage '{}'", where, key);
    std::memcpy(&count, rest.data(), sizeof(count));
    rest = rest.subspan(sizeof(count));
    if (count > rest.size() / size_of(type->second)) {
      bad_input("{}: truncated: storage '{}' of {} elements, but {} bytes are left", where, key,
                count, rest.size());
    }
    storages[key] = rest.first(count * size_of(type->second));
    rest = rest.subspan(count * size_of(type->second));
  }
  const auto find = [&](const Storage& storage) {
    const auto found = storages.find(storage.key);
    const auto needed = static_cast<std::uint64_t>(storage.view_offset + storage.elements);
    if (found == storages.end() || types.at(storage.key) != storage.type ||
        found->second.size() / size_of(storage.type) < needed) {
      bad_input("{}: storage '{}' of {} elements is missing", where, storage.key, needed);
    }
    return found->second;
  };
  TensorReader(pickle, file, find).run();
  return file;
}

}  // namespace ridgeline
