#include "train/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "base/durable_file.h"
#include "base/error.h"
#include "base/json_text.h"
#include "base/text.h"
#include "train/weight_file.h"

namespace ridgeline {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kLargestHeader = 100'000'000;  // as in the original implementation
constexpr const char* kMetadata = "__metadata__";

struct FormatType {
  std::string_view name;
  WeightType type;
};
constexpr std::array<FormatType, 13> kFormatTypes = {{{"F64", WeightType::f64},
                                                      {"F32", WeightType::f32},
                                                      {"F16", WeightType::f16},
                                                      {"BF16", WeightType::bf16},
                                                      {"I64", WeightType::i64},
                                                      {"I32", WeightType::i32},
                                                      {"I16", WeightType::i16},
                                                      {"I8", WeightType::i8},
                                                      {"U64", WeightType::u64},
                                                      {"U32", WeightType::u32},
                                                      {"U16", WeightType::u16},
                                                      {"U8", WeightType::u8},
                                                      {"BOOL", WeightType::boolean}}};

std::string_view format_name(WeightType type) {
  for (const FormatType& known : kFormatTypes) {
    if (known.type == type) return known.name;
  }
  fail("safetensors has no type {}", name_of(type));
}

std::uint64_t header_size(std::span<const std::byte> bytes) {
  std::uint64_t size = 0;
  std::memcpy(&size, bytes.data(), sizeof(size));
  return size;
}

struct Entry {
  WeightTensor tensor;
  std::uint64_t begin = 0, end = 0;
};

// Takes the header as it is parsed, so that nothing is kept that does not belong there: a header
// nested a million deep, or with names used twice, is refused where that begins.
class HeaderReader final : public nlohmann::json_sax<Json> {
 public:
  HeaderReader(std::string path, WeightFile& file) : path_(std::move(path)), file_(file) {}

  std::vector<Entry> entries;

  bool start_object(std::size_t) override {
    if (state_ == State::start) {
      state_ = State::names;
    } else if (state_ == State::name && name_ == kMetadata) {
      state_ = State::metadata;
    } else if (state_ == State::name) {
      state_ = State::tensor;
      entries.push_back({});
      entries.back().tensor.name = name_;
      has_type_ = has_shape_ = has_offsets_ = false;
    } else {
      refuse("an object");
    }
    return true;
  }
  bool end_object() override {
    if (state_ == State::tensor) finish_tensor();
    state_ = state_ == State::names ? State::end : State::names;
    return true;
  }
  bool key(std::string& text) override {
    switch (state_) {
      case State::names:
        if (!names_.insert(text).second) wrong("name '{}' is used twice", text);
        name_ = text;
        state_ = State::name;
        break;
      case State::metadata:
        if (file_.metadata.contains(text)) wrong("metadata '{}' is given twice", text);
        field_ = text;
        state_ = State::metadata_value;
        break;
      default:
        field_ = text;
        begin_field();
    }
    return true;
  }
  bool string(std::string& text) override {
    if (state_ == State::metadata_value) {
      file_.metadata[field_] = text;
      state_ = State::metadata;
    } else if (state_ == State::type) {
      set_type(text);
      state_ = State::tensor;
    } else {
      refuse("a text");
    }
    return true;
  }
  bool start_array(std::size_t) override {
    if (state_ == State::shape) {
      state_ = State::shape_items;
    } else if (state_ == State::offsets) {
      state_ = State::offset_items;
    } else {
      refuse("a list");
    }
    return true;
  }
  bool end_array() override {
    if (state_ == State::offset_items && offsets_ != 2) {
      wrong("data_offsets of '{}' has {} numbers; it needs 2", name_, offsets_);
    }
    state_ = State::tensor;
    return true;
  }
  bool number_unsigned(std::uint64_t number) override {
    Entry& entry = current();
    if (state_ == State::shape_items) {
      if (entry.tensor.dims.size() == kLargestRank) {
        wrong("'{}' has more than {} dimensions", name_, kLargestRank);
      }
      if (number > static_cast<std::uint64_t>(INT64_MAX)) wrong("'{}' is too large", name_);
      entry.tensor.dims.push_back(static_cast<std::int64_t>(number));
    } else if (state_ == State::offset_items && offsets_ < 2) {
      (offsets_ == 0 ? entry.begin : entry.end) = number;
      ++offsets_;
    } else {
      refuse("a number");
    }
    return true;
  }
  bool number_integer(std::int64_t number) override { refuse(fmt::format("{}", number)); }
  bool number_float(double, const std::string& text) override { refuse(text.substr(0, 32)); }
  bool null() override { refuse("null"); }
  bool boolean(bool value) override { refuse(value ? "true" : "false"); }
  bool binary(Json::binary_t&) override { refuse("binary data"); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    wrong("the header is not valid JSON near byte {}", position);
  }

 private:
  enum class State : std::uint8_t {
    start,
    names,   // in the outer object, before a name
    name,    // after it
    tensor,  // in a tensor's object, before a field
    type,
    shape,
    shape_items,
    offsets,
    offset_items,
    metadata,
    metadata_value,
    end,
  };

  template <typename... Args>
  [[noreturn]] void wrong(fmt::format_string<Args...> format, Args&&... args) const {
    bad_input("{}: broken safetensors file: {}", path_,
              fmt::format(format, std::forward<Args>(args)...));
  }
  [[noreturn]] void refuse(std::string_view what) const {
    if (state_ == State::metadata_value) {
      wrong("metadata '{}' is {}; only text is allowed", field_, what);
    }
    wrong("{} where it does not belong{}", what,
          name_.empty() ? std::string() : fmt::format(", at '{}'", name_));
  }
  Entry& current() {
    if (entries.empty()) refuse("a number");
    return entries.back();
  }
  void begin_field() {
    const auto once = [this](bool& seen, State next) {
      if (seen) wrong("'{}' gives {} twice", name_, field_);
      seen = true;
      state_ = next;
    };
    if (field_ == "dtype") {
      once(has_type_, State::type);
    } else if (field_ == "shape") {
      once(has_shape_, State::shape);
    } else if (field_ == "data_offsets") {
      once(has_offsets_, State::offsets);
      offsets_ = 0;
    } else {
      wrong("'{}' has an unknown field '{}'", name_, field_);
    }
  }
  void set_type(const std::string& text) {
    for (const FormatType& known : kFormatTypes) {
      if (known.name != text) continue;
      current().tensor.type = known.type;
      return;
    }
    std::vector<std::string_view> names;
    for (const FormatType& known : kFormatTypes) names.push_back(known.name);
    wrong("'{}' has dtype '{}'; known: {}", name_, text, joined(names, ", "));
  }
  void finish_tensor() const {
    if (!has_type_) wrong("'{}' has no dtype", name_);
    if (!has_shape_) wrong("'{}' has no shape", name_);
    if (!has_offsets_) wrong("'{}' has no data_offsets", name_);
    const Entry& entry = entries.back();
    const std::optional<std::int64_t> elements = checked_elements(entry.tensor.dims);
    if (!elements) wrong("'{}' of shape {} is too large", name_, dims_text(entry.tensor.dims));
    if (entry.begin > entry.end) {
      wrong("'{}' ends at byte {}, before it begins at {}", name_, entry.end, entry.begin);
    }
    const std::uint64_t needed = static_cast<std::uint64_t>(*elements) * size_of(entry.tensor.type);
    if (entry.end - entry.begin != needed) {
      wrong("'{}' of {} needs {} bytes, its data_offsets give {}", name_, entry.tensor.text(),
            needed, entry.end - entry.begin);
    }
  }

  std::string path_;
  WeightFile& file_;
  std::set<std::string> names_;
  State state_ = State::start;
  std::string name_, field_;
  bool has_type_ = false, has_shape_ = false, has_offsets_ = false;
  int offsets_ = 0;
};

// Tensors must fill the data without gaps or overlaps; their order in the header is free.
void check_coverage(const std::string& path, const std::vector<Entry>& entries,
                    std::uint64_t data_size) {
  std::vector<const Entry*> order;
  for (const Entry& entry : entries) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) {
    return a->begin != b->begin ? a->begin < b->begin : a->end < b->end;
  });
  std::uint64_t filled = 0;
  for (const Entry* entry : order) {
    if (entry->end > data_size) {
      bad_input(
          "{}: broken safetensors file: '{}' ends at byte {} of the data, which has {}; is "
          "the file truncated?",
          path, entry->tensor.name, entry->end, data_size);
    }
    if (entry->begin != filled) {
      bad_input("{}: broken safetensors file: '{}' begins at byte {} of the data, {} byte {}", path,
                entry->tensor.name, entry->begin,
                entry->begin < filled ? "inside the tensor that ends at" : "with a gap after",
                filled);
    }
    filled = entry->end;
  }
  if (filled != data_size) {
    bad_input("{}: broken safetensors file: {} bytes follow the last tensor", path,
              data_size - filled);
  }
}

std::string header_text(std::span<const WeightTensor> tensors,
                        const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
  std::uint64_t offset = 0;
  for (const WeightTensor& tensor : tensors) {
    const std::optional<std::int64_t> elements = checked_elements(tensor.dims);
    ensure(elements &&
               static_cast<std::size_t>(*elements) * size_of(tensor.type) == tensor.bytes.size(),
           "{} of {} has {} bytes", tensor.name, tensor.text(), tensor.bytes.size());
    ensure(!header.contains(tensor.name), "two tensors are named {}", tensor.name);
    header[tensor.name] = {{"dtype", format_name(tensor.type)},
                           {"shape", tensor.dims},
                           {"data_offsets", {offset, offset + tensor.bytes.size()}}};
    offset += tensor.bytes.size();
  }
  std::string text = json_text(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the data is aligned
  return text;
}

}  // namespace

bool is_safetensors(std::span<const std::byte> bytes) {
  return bytes.size() > 8 && bytes[8] == std::byte{'{'} &&
         header_size(bytes) <= std::max<std::uint64_t>(kLargestHeader, bytes.size());
}

WeightFile read_safetensors(std::shared_ptr<const MappedFile> mapping) {
  const std::span<const std::byte> bytes = mapping->bytes();
  const std::string path = mapping->path().string();
  if (bytes.size() < 8) bad_input("{}: broken safetensors file: {} bytes", path, bytes.size());
  const std::uint64_t size = header_size(bytes);
  if (size > kLargestHeader) {
    bad_input("{}: broken safetensors file: a header of {} bytes; at most {} are allowed", path,
              size, kLargestHeader);
  }
  if (size > bytes.size() - 8) {
    bad_input("{}: broken safetensors file: the header of {} bytes is truncated after {}", path,
              size, bytes.size() - 8);
  }
  WeightFile file;
  file.path = mapping->path();
  file.format = "safetensors";
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + 8, size);
  HeaderReader reader(path, file);
  (void)Json::sax_parse(text.begin(), text.end(), &reader);
  const std::span<const std::byte> data = bytes.subspan(8 + size);
  check_coverage(path, reader.entries, data.size());
  for (Entry& entry : reader.entries) {
    entry.tensor.bytes = data.subspan(entry.begin, entry.end - entry.begin);
    file.tensors.push_back(std::move(entry.tensor));
  }
  file.mapping = std::move(mapping);
  return file;
}

void write_safetensors(const std::filesystem::path& path, std::span<const WeightTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  const std::string header = header_text(tensors, metadata);
  const std::uint64_t size = header.size();
  DurableFile file(path);
  file.write(std::as_bytes(std::span(&size, 1)));
  file.write(header);
  for (const WeightTensor& tensor : tensors) file.write(tensor.bytes);
  file.commit();
}

}  // namespace ridgeline
