#pragma once

// Reads ONNX models and tensors for the tests: as much of protobuf's wire format as they use, into
// plain structs. Numbers of every type become doubles, which is exact for all but huge integers.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline::onnx {

// TensorProto.DataType; the types that the reader understands.
enum class ElementType : std::int32_t {
  float32 = 1,
  uint8 = 2,
  int8 = 3,
  uint16 = 4,
  int16 = 5,
  int32 = 6,
  int64 = 7,
  boolean = 9,
  float64 = 11,
  uint32 = 12,
  uint64 = 13,
};
[[nodiscard]] std::string_view name_of(ElementType type);

using Dims = std::vector<std::int64_t>;
[[nodiscard]] std::int64_t elements_of(const Dims& dims);

struct Array {
  std::string name;
  ElementType type = ElementType::float32;
  Dims dims;
  std::vector<double> numbers;  // row-major
};

struct Attribute {
  std::string name;
  double real = 0.0;
  std::int64_t integer = 0;
  std::string text;
  std::vector<std::int64_t> integers;
  Array array;
};

struct OpNode {
  std::string type;                          // "Conv"
  std::vector<std::string> inputs, outputs;  // an empty name: left out
  std::vector<Attribute> attributes;

  [[nodiscard]] const Attribute* find(std::string_view name) const;
  [[nodiscard]] double real(std::string_view name, double otherwise) const;
  [[nodiscard]] std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  [[nodiscard]] std::string text(std::string_view name, std::string_view otherwise) const;
  [[nodiscard]] Dims integers(std::string_view name, const Dims& otherwise) const;
  [[nodiscard]] bool has_input(std::size_t index) const {
    return index < inputs.size() && !inputs[index].empty();
  }
  [[nodiscard]] bool has_output(std::size_t index) const {
    return index < outputs.size() && !outputs[index].empty();
  }
};

struct Model {
  std::int64_t opset = 0;
  std::vector<OpNode> nodes;
  std::vector<Array> constants;  // initializers
  std::vector<std::string> inputs, outputs;
};

// Throw a bad_input Error naming the file when it is not what it should be.
[[nodiscard]] Model read_model(const std::filesystem::path& path);
[[nodiscard]] Array read_array(const std::filesystem::path& path);

}  // namespace ridgeline::onnx
