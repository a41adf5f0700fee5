#include "onnx/file.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>

#include <cstring>
#include <limits>
#include <utility>

#define ONNX_ML 1
#define ONNX_NAMESPACE onnx
#include <onnx/onnx_pb.h>

#include "base/digest.h"
#include "base/durable_file.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "base/parse.h"
#include "base/utf8.h"

namespace ridgeline::onnx {
namespace {

namespace fs = std::filesystem;
using ::onnx::AttributeProto;
using ::onnx::GraphProto;
using ::onnx::ModelProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;
using ::onnx::ValueInfoProto;

constexpr std::size_t kMostBytes = std::numeric_limits<std::int32_t>::max();  // of a message
constexpr int kMostAxes = 8;

constexpr std::int64_t kIrVersion = 8;  // of ONNX 1.10 to 1.12, which have opset 17
constexpr const char* kExternal = ".data";

// Numbers of fields that the schema of ONNX 1.12 does not have yet.
constexpr int kNodeMetadata = 9;
constexpr const char* kNameScopes = "pkg.torch.onnx.name_scopes";

// Files with data of a model beside it, each mapped once.
class ExternalData {
 public:
  explicit ExternalData(const fs::path& model) : folder_(model.parent_path()) {
    if (folder_.empty()) folder_ = ".";
  }

  // The bytes of a tensor, and what keeps them.
  void read(const TensorProto& proto, std::size_t size, Array& array) {
    std::string location;
    std::uint64_t offset = 0, length = size;
    for (const auto& entry : proto.external_data()) {
      if (entry.key() == "location") location = entry.value();
      if (entry.key() == "offset") offset = number(entry.value(), proto);
      if (entry.key() == "length") length = number(entry.value(), proto);
    }
    const std::shared_ptr<const MappedFile> file = open(location, proto);
    const std::span<const std::byte> bytes = file->bytes();
    if (length != size || offset > bytes.size() || size > bytes.size() - offset) {
      bad_input("tensor '{}' needs {} bytes at {} of {}, which has {}", proto.name(), size, offset,
                location, bytes.size());
    }
    array.bytes = bytes.subspan(offset, size);
    array.owner = file;
  }

  // The hash of all that was read, after the model's own.
  [[nodiscard]] std::string hash(std::string model) const {
    if (files_.empty()) return model;
    for (const auto& [name, file] : files_) {
      model += digest_of(DigestKind::sha256, as_numbers(file->bytes()));
    }
    return digest_of(DigestKind::sha256, as_numbers(std::as_bytes(std::span(model))));
  }

  static std::span<const std::uint8_t> as_numbers(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
  }

 private:
  static std::uint64_t number(const std::string& text, const TensorProto& proto) {
    const auto value = number_in<std::uint64_t>(text);
    if (!value) bad_input("tensor '{}': '{}' is no place in a file", proto.name(), text);
    return *value;
  }

  std::shared_ptr<const MappedFile> open(const std::string& location, const TensorProto& proto) {
    if (const auto known = files_.find(location); known != files_.end()) return known->second;
    const fs::path name(location);
    bool inside = !location.empty() && name.is_relative();
    for (const fs::path& part : name) inside = inside && part != "..";
    std::error_code error;
    const fs::path folder = fs::canonical(folder_, error);
    const fs::path path = inside && !error ? fs::canonical(folder / name, error) : fs::path();
    if (inside && error) {
      bad_input("its data lies in {}, which cannot be read: {}", location, error.message());
    }
    // A link may lead anywhere.
    const fs::path relative = path.lexically_relative(folder);
    if (!inside || relative.empty() || *relative.begin() == "..") {
      bad_input("tensor '{}' is said to lie in '{}': only files in the model's folder are read",
                proto.name(), location);
    }
    return files_[location] = std::make_shared<const MappedFile>(path);
  }

  fs::path folder_;
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;
};

// The low bytes of every number: whole numbers of any size, and 16-bit floats as their bits.
template <typename Numbers>
void append_low_bytes(const Numbers& numbers, std::size_t size, std::string& bytes) {
  for (const auto& number : numbers) {
    bytes.append(reinterpret_cast<const char*>(&number), size);
  }
}

// Elements that stand in a field of their type instead of raw_data.
std::string typed_bytes(const TensorProto& proto, ElementType type) {
  std::string bytes;
  const std::size_t size = size_of(type);
  switch (type) {
    case ElementType::float32:
      append_low_bytes(proto.float_data(), size, bytes);
      break;
    case ElementType::float64:
      append_low_bytes(proto.double_data(), size, bytes);
      break;
    case ElementType::int64:
      append_low_bytes(proto.int64_data(), size, bytes);
      break;
    case ElementType::uint32:
    case ElementType::uint64:
      append_low_bytes(proto.uint64_data(), size, bytes);
      break;
    default:
      append_low_bytes(proto.int32_data(), size, bytes);
      break;
  }
  return bytes;
}

// Takes the bytes out of the message. Of a type that we cannot read they stay there.
Array take_array(TensorProto& proto, ExternalData& external) {
  Array array{proto.name(), static_cast<ElementType>(proto.data_type()), {}, {}, nullptr};
  array.dims.assign(proto.dims().begin(), proto.dims().end());
  const std::optional<std::int64_t> elements = checked_elements(array.dims);
  if (!elements || array.dims.size() > kMostAxes) {
    bad_input("tensor '{}' has dimensions {}", array.name, dims_text(array.dims));
  }
  if (!is_known(array.type)) return array;
  const std::size_t size = static_cast<std::size_t>(*elements) * size_of(array.type);
  if (proto.data_location() == TensorProto::EXTERNAL) {
    external.read(proto, size, array);
    return array;
  }
  auto bytes = std::make_shared<std::string>(
      proto.has_raw_data() ? std::move(*proto.mutable_raw_data()) : typed_bytes(proto, array.type));
  if (bytes->size() != size) {
    bad_input("tensor '{}' of {} {} has {} bytes where {} are needed", array.name,
              dims_text(array.dims), name_of(array.type), bytes->size(), size);
  }
  array.bytes = std::as_bytes(std::span(*bytes));
  array.owner = std::move(bytes);
  return array;
}

Attribute take_attribute(AttributeProto& proto, ExternalData& external) {
  Attribute attribute;
  attribute.name = proto.name();
  attribute.real = decimal_of(proto.f());
  attribute.integer = proto.i();
  attribute.text = proto.s();
  attribute.integers.assign(proto.ints().begin(), proto.ints().end());
  attribute.reals.assign(proto.floats().begin(), proto.floats().end());
  if (proto.has_t()) attribute.array = take_array(*proto.mutable_t(), external);
  attribute.is_graph = proto.has_g() || proto.graphs_size() > 0;
  return attribute;
}

// The last of the module paths that PyTorch 2 writes down: "['', 'layer1', 'layer1.0', 'relu']".
std::string module_path(const std::string& scopes) {
  std::vector<std::string> names;
  for (std::size_t at = scopes.find('\''); at != std::string::npos;) {
    const std::size_t end = scopes.find('\'', at + 1);
    if (end == std::string::npos) break;
    names.push_back(scopes.substr(at + 1, end - at - 1));
    at = scopes.find('\'', end + 1);
  }
  // The last one names the op itself.
  return names.size() < 2 ? std::string() : names[names.size() - 2];
}

std::string scope_of(const NodeProto& node) {
  const google::protobuf::UnknownFieldSet& fields = node.unknown_fields();
  for (int i = 0; i < fields.field_count(); ++i) {
    const google::protobuf::UnknownField& field = fields.field(i);
    if (field.number() != kNodeMetadata ||
        field.type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) {
      continue;
    }
    ::onnx::StringStringEntryProto entry;
    if (entry.ParseFromString(field.length_delimited()) && entry.key() == kNameScopes) {
      return module_path(entry.value());
    }
  }
  return {};
}

OpNode take_node(NodeProto& proto, ExternalData& external) {
  OpNode node;
  node.name = proto.name();
  node.domain = proto.domain() == "ai.onnx" ? std::string() : proto.domain();
  node.type = proto.op_type();
  node.inputs.assign(proto.input().begin(), proto.input().end());
  node.outputs.assign(proto.output().begin(), proto.output().end());
  for (AttributeProto& attribute : *proto.mutable_attribute()) {
    node.attributes.push_back(take_attribute(attribute, external));
  }
  node.scope = scope_of(proto);
  return node;
}

ValueInfo read_value_info(const ValueInfoProto& proto) {
  ValueInfo info;
  info.name = proto.name();
  info.is_tensor = proto.type().has_tensor_type();
  const auto& tensor = proto.type().tensor_type();
  info.type = static_cast<ElementType>(tensor.elem_type());
  for (const auto& dim : tensor.shape().dim()) {
    info.dims.push_back(dim.has_dim_value() ? std::optional(dim.dim_value()) : std::nullopt);
    info.dim_names.push_back(dim.dim_param());
  }
  return info;
}

Model take_model(ModelProto& proto, ExternalData& external) {
  if (!proto.has_graph()) bad_input("is not an ONNX model: it has no graph");
  Model model;
  for (const auto& opset : proto.opset_import()) {
    const bool own = opset.domain().empty() || opset.domain() == "ai.onnx";
    model.opsets[own ? std::string() : opset.domain()] = opset.version();
  }
  model.producer = proto.producer_name() + " " + proto.producer_version();
  for (const auto& entry : proto.metadata_props()) model.metadata[entry.key()] = entry.value();
  model.functions = static_cast<std::size_t>(proto.functions_size());
  GraphProto& graph = *proto.mutable_graph();
  if (graph.sparse_initializer_size() > 0) bad_input("has sparse tensors, which are not supported");
  for (TensorProto& tensor : *graph.mutable_initializer()) {
    model.constants.push_back(take_array(tensor, external));
  }
  for (NodeProto& node : *graph.mutable_node()) model.nodes.push_back(take_node(node, external));
  for (const ValueInfoProto& info : graph.input()) model.inputs.push_back(read_value_info(info));
  for (const ValueInfoProto& info : graph.output()) model.outputs.push_back(read_value_info(info));
  return model;
}

template <typename Message>
void parse(std::span<const std::byte> bytes, Message& message) {
  // Protobuf would print what it dislikes; what we throw says it.
  google::protobuf::SetLogHandler(nullptr);
  if (bytes.size() > kMostBytes) {
    bad_input("has more than 2 GiB; a model of that size keeps its weights in a file beside it");
  }
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    bad_input("is not an ONNX file, or its end is missing");
  }
}

// What is wrong gets the name in front.
template <typename Body>
auto naming(const std::string& name, Body&& body) {
  try {
    return body();
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("{}: {}", name, printable(error.what())));
  }
}

// Reads a file with `read`.
template <typename Read>
auto read_file(const fs::path& path, Read&& read) {
  const MappedFile file(path);
  return naming(path.string(), [&] { return read(file.bytes()); });
}

Model hashed_model(ModelProto& proto, ExternalData& external, std::span<const std::byte> bytes) {
  Model model = take_model(proto, external);
  model.hash = external.hash(digest_of(DigestKind::sha256, ExternalData::as_numbers(bytes)));
  return model;
}

void put_array(const Array& array, TensorProto& proto) {
  proto.set_name(array.name);
  proto.set_data_type(static_cast<int>(array.type));
  for (const std::int64_t dim : array.dims) proto.add_dims(dim);
  proto.set_raw_data(array.bytes.data(), array.bytes.size());
}

void put_attribute(const Attribute& attribute, AttributeProto& proto) {
  proto.set_name(attribute.name);
  switch (attribute.kind) {
    case Attribute::Kind::real:
      proto.set_type(AttributeProto::FLOAT);
      proto.set_f(static_cast<float>(attribute.real));
      break;
    case Attribute::Kind::integer:
      proto.set_type(AttributeProto::INT);
      proto.set_i(attribute.integer);
      break;
    case Attribute::Kind::text:
      proto.set_type(AttributeProto::STRING);
      proto.set_s(attribute.text);
      break;
    case Attribute::Kind::integers:
      proto.set_type(AttributeProto::INTS);
      for (const std::int64_t integer : attribute.integers) proto.add_ints(integer);
      break;
    case Attribute::Kind::reals:
      proto.set_type(AttributeProto::FLOATS);
      for (const double real : attribute.reals) proto.add_floats(static_cast<float>(real));
      break;
    case Attribute::Kind::array:
      proto.set_type(AttributeProto::TENSOR);
      put_array(attribute.array.value(), *proto.mutable_t());
      break;
  }
}

void put_node(const OpNode& node, NodeProto& proto) {
  proto.set_name(node.name);
  proto.set_op_type(node.type);
  if (!node.domain.empty()) proto.set_domain(node.domain);
  for (const std::string& name : node.inputs) proto.add_input(name);
  for (const std::string& name : node.outputs) proto.add_output(name);
  for (const Attribute& attribute : node.attributes) {
    put_attribute(attribute, *proto.add_attribute());
  }
}

void put_value_info(const ValueInfo& info, ValueInfoProto& proto) {
  proto.set_name(info.name);
  auto& tensor = *proto.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(static_cast<int>(info.type));
  for (std::size_t i = 0; i < info.dims.size(); ++i) {
    auto& dim = *tensor.mutable_shape()->add_dim();
    if (info.dims[i]) {
      dim.set_dim_value(*info.dims[i]);
    } else {
      dim.set_dim_param(info.dim_names[i]);
    }
  }
}

// Weights that one message cannot hold go into a file beside it.
void write_external(std::span<const Array> arrays, const fs::path& path, GraphProto& graph) {
  fs::path data = path;
  data += kExternal;
  DurableFile file(data);
  std::size_t offset = 0;
  for (const Array& array : arrays) {
    TensorProto& proto = *graph.add_initializer();
    proto.set_name(array.name);
    proto.set_data_type(static_cast<int>(array.type));
    for (const std::int64_t dim : array.dims) proto.add_dims(dim);
    proto.set_data_location(TensorProto::EXTERNAL);
    const auto add = [&](const char* key, std::string value) {
      auto& entry = *proto.add_external_data();
      entry.set_key(key);
      entry.set_value(std::move(value));
    };
    add("location", data.filename().string());
    add("offset", std::to_string(offset));
    add("length", std::to_string(array.bytes.size()));
    file.write(array.bytes);
    offset += array.bytes.size();
  }
  file.commit();
}

}  // namespace

const Attribute* OpNode::find(std::string_view attribute) const {
  for (const Attribute& each : attributes) {
    if (each.name == attribute) return &each;
  }
  return nullptr;
}

double OpNode::real(std::string_view attribute, double otherwise) const {
  const Attribute* found = find(attribute);
  return found != nullptr ? found->real : otherwise;
}

std::int64_t OpNode::integer(std::string_view attribute, std::int64_t otherwise) const {
  const Attribute* found = find(attribute);
  return found != nullptr ? found->integer : otherwise;
}

std::string OpNode::text(std::string_view attribute, std::string_view otherwise) const {
  const Attribute* found = find(attribute);
  return found != nullptr ? found->text : std::string(otherwise);
}

Dims OpNode::integers(std::string_view attribute, const Dims& otherwise) const {
  const Attribute* found = find(attribute);
  return found != nullptr ? found->integers : otherwise;
}

std::int64_t Model::opset() const {
  const auto found = opsets.find("");
  return found == opsets.end() ? 0 : found->second;
}

Model read_model(const fs::path& path) {
  return read_file(path, [&](std::span<const std::byte> bytes) {
    ModelProto proto;
    parse(bytes, proto);
    ExternalData external(path);
    return hashed_model(proto, external, bytes);
  });
}

Model read_model(const std::string& name, std::span<const std::byte> bytes) {
  return naming(name, [&] {
    ModelProto proto;
    parse(bytes, proto);
    for (const TensorProto& tensor : proto.graph().initializer()) {
      if (tensor.data_location() == TensorProto::EXTERNAL) {
        bad_input("tensor '{}' lies in another file; give the path of the network's file",
                  tensor.name());
      }
    }
    ExternalData none{fs::path(name)};
    return hashed_model(proto, none, bytes);
  });
}

Array read_array(const fs::path& path) {
  return read_file(path, [&](std::span<const std::byte> bytes) {
    TensorProto proto;
    parse(bytes, proto);
    ExternalData external(path);
    return take_array(proto, external);
  });
}

void write_model(const Model& model, const fs::path& path, std::size_t most_inside) {
  ModelProto proto;
  proto.set_ir_version(kIrVersion);
  proto.set_producer_name("ridgeline");
  for (const auto& [domain, version] : model.opsets) {
    auto& opset = *proto.add_opset_import();
    opset.set_domain(domain);
    opset.set_version(version);
  }
  for (const auto& [key, value] : model.metadata) {
    auto& entry = *proto.add_metadata_props();
    entry.set_key(key);
    entry.set_value(value);
  }
  GraphProto& graph = *proto.mutable_graph();
  graph.set_name("network");
  for (const OpNode& node : model.nodes) put_node(node, *graph.add_node());
  for (const ValueInfo& info : model.inputs) put_value_info(info, *graph.add_input());
  for (const ValueInfo& info : model.outputs) put_value_info(info, *graph.add_output());
  std::size_t bytes = 0;
  for (const Array& array : model.constants) bytes += array.bytes.size();
  if (bytes > most_inside) {
    write_external(model.constants, path, graph);
  } else {
    for (const Array& array : model.constants) put_array(array, *graph.add_initializer());
  }
  std::string text;
  ensure(proto.SerializeToString(&text), "{}: the model cannot be written", path.string());
  DurableFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace ridgeline::onnx
