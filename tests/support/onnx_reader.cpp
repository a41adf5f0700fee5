#include "support/onnx_reader.h"

#include <bit>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>

#include "base/error.h"

namespace ridgeline::onnx {
namespace {

using Bytes = std::string_view;

// One field of a message: its number and, by its wire type, a number or a stretch of bytes.
struct Field {
  std::uint64_t number = 0;
  std::uint64_t value = 0;
  Bytes bytes;
  bool is_bytes = false;

  [[nodiscard]] std::int64_t integer() const { return static_cast<std::int64_t>(value); }
  [[nodiscard]] float real() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(value));
  }
  [[nodiscard]] std::string text() const { return std::string(bytes); }
};

template <typename T>
T take_fixed(Bytes& bytes) {
  if (bytes.size() < sizeof(T)) bad_input("a message ends within a number");
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  bytes.remove_prefix(sizeof(T));
  return value;
}

std::uint64_t take_varint(Bytes& bytes) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = take_fixed<std::uint8_t>(bytes);
    value |= std::uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return value;
  }
  bad_input("a number has more than 64 bits");
}

Field take_field(Bytes& bytes) {
  const std::uint64_t key = take_varint(bytes);
  Field field{.number = key >> 3, .value = 0, .bytes = {}};
  switch (key & 7) {
    case 0:
      field.value = take_varint(bytes);
      return field;
    case 1:
      field.value = take_fixed<std::uint64_t>(bytes);
      return field;
    case 5:
      field.value = take_fixed<std::uint32_t>(bytes);
      return field;
    case 2: {
      const std::uint64_t size = take_varint(bytes);
      if (size > bytes.size()) bad_input("a field of {} bytes has only {}", size, bytes.size());
      field.bytes = bytes.substr(0, size);
      field.is_bytes = true;
      bytes.remove_prefix(size);
      return field;
    }
    default:
      bad_input("wire type {} is unknown", key & 7);
  }
}

// A repeated number comes packed into one field or as a field each time.
void append_integers(const Field& field, std::vector<std::int64_t>& integers) {
  if (!field.is_bytes) {
    integers.push_back(field.integer());
    return;
  }
  for (Bytes rest = field.bytes; !rest.empty();) {
    integers.push_back(static_cast<std::int64_t>(take_varint(rest)));
  }
}

template <typename T>
void append_fixed(Bytes bytes, std::vector<double>& numbers) {
  while (!bytes.empty()) numbers.push_back(static_cast<double>(take_fixed<T>(bytes)));
}

template <typename T>
void append_reals(const Field& field, std::vector<double>& numbers) {
  if (field.is_bytes) {
    append_fixed<T>(field.bytes, numbers);
  } else if constexpr (sizeof(T) == 4) {
    numbers.push_back(field.real());
  } else {
    numbers.push_back(std::bit_cast<double>(field.value));
  }
}

void append_raw(ElementType type, Bytes raw, std::vector<double>& numbers) {
  switch (type) {
    case ElementType::float32:
      return append_fixed<float>(raw, numbers);
    case ElementType::float64:
      return append_fixed<double>(raw, numbers);
    case ElementType::uint8:
      return append_fixed<std::uint8_t>(raw, numbers);
    case ElementType::boolean:
      return append_fixed<std::uint8_t>(raw, numbers);
    case ElementType::int8:
      return append_fixed<std::int8_t>(raw, numbers);
    case ElementType::uint16:
      return append_fixed<std::uint16_t>(raw, numbers);
    case ElementType::int16:
      return append_fixed<std::int16_t>(raw, numbers);
    case ElementType::int32:
      return append_fixed<std::int32_t>(raw, numbers);
    case ElementType::uint32:
      return append_fixed<std::uint32_t>(raw, numbers);
    case ElementType::int64:
      return append_fixed<std::int64_t>(raw, numbers);
    case ElementType::uint64:
      return append_fixed<std::uint64_t>(raw, numbers);
  }
  bad_input("element type {} is not understood", static_cast<int>(type));
}

// TensorProto
Array parse_array(Bytes bytes) {
  Array array;
  Bytes raw;
  std::vector<std::int64_t> integers;
  while (!bytes.empty()) {
    const Field field = take_field(bytes);
    switch (field.number) {
      case 1:
        append_integers(field, array.dims);
        break;
      case 2:
        array.type = static_cast<ElementType>(field.value);
        break;
      case 4:
        append_reals<float>(field, array.numbers);
        break;
      case 5:
      case 7:
      case 11:
        append_integers(field, integers);
        break;
      case 8:
        array.name = field.text();
        break;
      case 9:
        raw = field.bytes;
        break;
      case 10:
        append_reals<double>(field, array.numbers);
        break;
      default:
        break;
    }
  }
  append_raw(array.type, raw, array.numbers);
  for (const std::int64_t integer : integers) {
    const bool is_unsigned = array.type == ElementType::uint64;
    array.numbers.push_back(is_unsigned ? static_cast<double>(static_cast<std::uint64_t>(integer))
                                        : static_cast<double>(integer));
  }
  if (static_cast<std::int64_t>(array.numbers.size()) != elements_of(array.dims)) {
    bad_input("tensor '{}' holds {} numbers where its dimensions ask for {}", array.name,
              array.numbers.size(), elements_of(array.dims));
  }
  return array;
}

// AttributeProto
Attribute parse_attribute(Bytes bytes) {
  Attribute attribute;
  while (!bytes.empty()) {
    const Field field = take_field(bytes);
    switch (field.number) {
      case 1:
        attribute.name = field.text();
        break;
      case 2:
        attribute.real = field.real();
        break;
      case 3:
        attribute.integer = field.integer();
        break;
      case 4:
        attribute.text = field.text();
        break;
      case 5:
        attribute.array = parse_array(field.bytes);
        break;
      case 8:
        append_integers(field, attribute.integers);
        break;
      default:
        break;
    }
  }
  return attribute;
}

// NodeProto
OpNode parse_node(Bytes bytes) {
  OpNode node;
  while (!bytes.empty()) {
    const Field field = take_field(bytes);
    switch (field.number) {
      case 1:
        node.inputs.push_back(field.text());
        break;
      case 2:
        node.outputs.push_back(field.text());
        break;
      case 4:
        node.type = field.text();
        break;
      case 5:
        node.attributes.push_back(parse_attribute(field.bytes));
        break;
      default:
        break;
    }
  }
  return node;
}

// ValueInfoProto, of which the name is enough.
std::string parse_name(Bytes bytes) {
  std::string name;
  while (!bytes.empty()) {
    const Field field = take_field(bytes);
    if (field.number == 1) name = field.text();
  }
  return name;
}

// GraphProto
void parse_graph(Bytes bytes, Model& model) {
  while (!bytes.empty()) {
    const Field field = take_field(bytes);
    switch (field.number) {
      case 1:
        model.nodes.push_back(parse_node(field.bytes));
        break;
      case 5:
        model.constants.push_back(parse_array(field.bytes));
        break;
      case 11:
        model.inputs.push_back(parse_name(field.bytes));
        break;
      case 12:
        model.outputs.push_back(parse_name(field.bytes));
        break;
      default:
        break;
    }
  }
}

// OperatorSetIdProto. Training ops live in a domain of their own, with versions of their own.
std::int64_t parse_opset(Bytes bytes) {
  std::int64_t version = 0;
  while (!bytes.empty()) {
    const Field field = take_field(bytes);
    if (field.number == 2) version = field.integer();
  }
  return version;
}

// ModelProto
Model parse_model(Bytes bytes) {
  Model model;
  while (!bytes.empty()) {
    const Field field = take_field(bytes);
    if (field.number == 7) parse_graph(field.bytes, model);
    if (field.number == 8) model.opset = parse_opset(field.bytes);
  }
  return model;
}

template <typename Parse>
auto parse_file(const std::filesystem::path& path, Parse&& parse) {
  std::ifstream file(path, std::ios::binary);
  if (!file) bad_input("{}: cannot be opened", path.string());
  const std::string contents{std::istreambuf_iterator<char>(file), {}};
  try {
    return parse(Bytes(contents));
  } catch (const Error& error) {
    bad_input("{}: {}", path.string(), error.what());
  }
}

}  // namespace

std::string_view name_of(ElementType type) {
  switch (type) {
    case ElementType::float32:
      return "float32";
    case ElementType::uint8:
      return "uint8";
    case ElementType::int8:
      return "int8";
    case ElementType::uint16:
      return "uint16";
    case ElementType::int16:
      return "int16";
    case ElementType::int32:
      return "int32";
    case ElementType::int64:
      return "int64";
    case ElementType::boolean:
      return "boolean";
    case ElementType::float64:
      return "float64";
    case ElementType::uint32:
      return "uint32";
    case ElementType::uint64:
      return "uint64";
  }
  return "?";
}

std::int64_t elements_of(const Dims& dims) {
  std::int64_t elements = 1;
  for (const std::int64_t dim : dims) elements *= dim;
  return elements;
}

const Attribute* OpNode::find(std::string_view name) const {
  for (const Attribute& attribute : attributes) {
    if (attribute.name == name) return &attribute;
  }
  return nullptr;
}

double OpNode::real(std::string_view name, double otherwise) const {
  const Attribute* found = find(name);
  return found != nullptr ? found->real : otherwise;
}

std::int64_t OpNode::integer(std::string_view name, std::int64_t otherwise) const {
  const Attribute* found = find(name);
  return found != nullptr ? found->integer : otherwise;
}

std::string OpNode::text(std::string_view name, std::string_view otherwise) const {
  const Attribute* found = find(name);
  return found != nullptr ? found->text : std::string(otherwise);
}

Dims OpNode::integers(std::string_view name, const Dims& otherwise) const {
  const Attribute* found = find(name);
  return found != nullptr ? found->integers : otherwise;
}

Model read_model(const std::filesystem::path& path) { return parse_file(path, parse_model); }

Array read_array(const std::filesystem::path& path) { return parse_file(path, parse_array); }

}  // namespace ridgeline::onnx
