#include "support/onnx_models.h"

#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/philox.h"

namespace ridgeline::testing {

using onnx::Attribute;
using onnx::Dims;
using onnx::ElementType;

OnnxMaker::OnnxMaker(std::vector<std::int64_t> image, std::int64_t opset) {
  model_.opsets[""] = opset;
  onnx::ValueInfo info{.name = "image", .dims = {std::nullopt}, .dim_names = {"batch"}};
  for (const std::int64_t size : image) {
    info.dims.push_back(size > 0 ? std::optional(size) : std::nullopt);
    info.dim_names.push_back(size > 0 ? "" : "free" + std::to_string(info.dims.size()));
  }
  model_.inputs.push_back(std::move(info));
}

std::vector<std::string> OnnxMaker::nodes(const std::string& type, std::vector<std::string> inputs,
                                          std::size_t outputs, std::vector<Attribute> attributes) {
  onnx::OpNode made;
  made.type = type;
  made.name = type + "_" + std::to_string(names_);
  made.inputs = std::move(inputs);
  for (std::size_t i = 0; i < outputs; ++i) made.outputs.push_back("v" + std::to_string(names_++));
  made.attributes = std::move(attributes);
  model_.nodes.push_back(made);
  return made.outputs;
}

std::string OnnxMaker::node(const std::string& type, std::vector<std::string> inputs,
                            std::vector<Attribute> attributes, std::string name) {
  const std::string output = nodes(type, std::move(inputs), 1, std::move(attributes))[0];
  if (!name.empty()) model_.nodes.back().name = std::move(name);
  return output;
}

std::string OnnxMaker::weights(const std::string& name, Dims dims) {
  PhiloxSequence random(1, RandomStream::weights, hash_of(name));
  std::vector<double> values(static_cast<std::size_t>(onnx::elements_of(dims)));
  // Above 0, so that variances are some.
  for (double& value : values) value = 0.2 + random.uniform_double();
  return numbers(name, std::move(dims), std::move(values));
}

std::string OnnxMaker::numbers(const std::string& name, Dims dims, std::vector<double> values) {
  model_.constants.push_back(onnx::make_array(name, ElementType::float32, std::move(dims), values));
  return name;
}

std::string OnnxMaker::number(double value) {
  return numbers("number" + std::to_string(names_++), {}, {value});
}

std::string OnnxMaker::integers(Dims values) {
  std::string name = "integers" + std::to_string(names_++);
  model_.constants.push_back(onnx::make_integers(name, {std::ssize(values)}, values));
  return name;
}

std::string OnnxMaker::conv(const std::string& src, const std::string& name, Dims dims,
                            std::vector<Attribute> attributes, bool bias) {
  const std::int64_t channels = dims[0];
  std::vector<std::string> inputs = {src, weights(name + ".weight", std::move(dims))};
  if (bias) inputs.push_back(weights(name + ".bias", {channels}));
  return node("Conv", std::move(inputs), std::move(attributes));
}

std::string OnnxMaker::norm(const std::string& src, const std::string& name,
                            std::int64_t channels) {
  std::vector<std::string> inputs = {src};
  for (const char* part : {".weight", ".bias", ".running_mean", ".running_var"}) {
    inputs.push_back(weights(name + part, {channels}));
  }
  return node("BatchNormalization", std::move(inputs), {attribute("epsilon", 1e-5)});
}

std::string OnnxMaker::linear(const std::string& src, const std::string& name, std::int64_t inputs,
                              std::int64_t features) {
  return node(
      "Gemm",
      {src, weights(name + ".weight", {features, inputs}), weights(name + ".bias", {features})},
      {attribute("transB", std::int64_t{1})});
}

void OnnxMaker::classify(const std::string& src, std::int64_t channels, std::int64_t classes) {
  const std::string pooled = node("GlobalAveragePool", {src}, {}, "/avgpool/GlobalAveragePool");
  const std::string flat =
      node("Flatten", {pooled}, {attribute("axis", std::int64_t{1})}, "/Flatten");
  output(linear(flat, "fc", channels, classes));
}

void OnnxMaker::output(const std::string& name) {
  model_.outputs.push_back({.name = name, .dims = {std::nullopt, 5}, .dim_names = {"batch", ""}});
}

std::filesystem::path OnnxMaker::write(const std::filesystem::path& path) {
  onnx::write_model(model_, path);
  return path;
}

Attribute attribute(std::string name, std::int64_t value) {
  Attribute made;
  made.name = std::move(name);
  made.integer = value;
  return made;
}
Attribute attribute(std::string name, Dims values) {
  Attribute made;
  made.name = std::move(name);
  made.kind = Attribute::Kind::integers;
  made.integers = std::move(values);
  return made;
}
Attribute attribute(std::string name, double value) {
  Attribute made;
  made.name = std::move(name);
  made.kind = Attribute::Kind::real;
  made.real = value;
  return made;
}
Attribute attribute(std::string name, const char* value) {
  Attribute made;
  made.name = std::move(name);
  made.kind = Attribute::Kind::text;
  made.text = value;
  return made;
}

namespace {

std::string varint(std::uint64_t value) {
  std::string bytes;
  do {
    bytes += static_cast<char>((value & 0x7F) | (value > 0x7F ? 0x80 : 0));
    value >>= 7;
  } while (value > 0);
  return bytes;
}

}  // namespace

std::string proto_number(int field, std::uint64_t value) {
  return varint(static_cast<std::uint64_t>(field) << 3) + varint(value);
}

std::string proto_bytes(int field, std::string_view bytes) {
  return varint(static_cast<std::uint64_t>(field) << 3 | 2) + varint(bytes.size()) +
         std::string(bytes);
}

std::string model_with_tensor(const std::string& tensor_fields) {
  const std::string tensor = proto_bytes(8, "w") + tensor_fields;
  return proto_number(1, 8) + proto_bytes(8, proto_number(2, 17)) +
         proto_bytes(7, proto_bytes(5, tensor));
}

OnnxFolder::OnnxFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "ridgeline-onnx-XXXXXX").string();
  ensure(mkdtemp(name.data()) != nullptr, "no temporary folder can be made");
  path_ = name;
}

OnnxFolder::~OnnxFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace ridgeline::testing
