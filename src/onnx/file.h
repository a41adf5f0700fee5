#pragma once

// An ONNX file as plain structs, read and written with Debian's ONNX schema. Protobuf stays in
// file.cpp. Nothing here knows what an op means.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/array.h"

namespace ridgeline::onnx {

struct Attribute {
  std::string name;
  double real = 0.0;
  std::int64_t integer = 0;
  std::string text;
  std::vector<std::int64_t> integers;
  std::vector<double> reals;
  std::optional<Array> array;
  bool is_graph = false;  // the body of a loop or a branch, which is not read

  // Which of them it is, where a file is written.
  enum class Kind : std::uint8_t { real, integer, text, integers, reals, array };
  Kind kind = Kind::integer;
};

struct OpNode {
  std::string name, domain;
  std::string type;                          // "Conv"
  std::vector<std::string> inputs, outputs;  // an empty name: left out
  std::vector<Attribute> attributes;
  std::string scope;  // path of the PyTorch module, where the exporter tells it

  [[nodiscard]] const Attribute* find(std::string_view attribute) const;
  [[nodiscard]] double real(std::string_view attribute, double otherwise) const;
  [[nodiscard]] std::int64_t integer(std::string_view attribute, std::int64_t otherwise) const;
  [[nodiscard]] std::string text(std::string_view attribute, std::string_view otherwise) const;
  [[nodiscard]] Dims integers(std::string_view attribute, const Dims& otherwise) const;
  [[nodiscard]] bool has_input(std::size_t index) const {
    return index < inputs.size() && !inputs[index].empty();
  }
  [[nodiscard]] bool has_output(std::size_t index) const {
    return index < outputs.size() && !outputs[index].empty();
  }
};

// An input or output of the network.
struct ValueInfo {
  std::string name;
  ElementType type = ElementType::float32;
  bool is_tensor = true;
  // A dimension without a size is free, such as the batch.
  std::vector<std::optional<std::int64_t>> dims;
  std::vector<std::string> dim_names;  // of the free ones, where a file is written
};

struct Model {
  std::map<std::string, std::int64_t> opsets;  // by domain; "" is ONNX's own
  std::string producer;
  std::vector<OpNode> nodes;
  std::vector<Array> constants;  // initializers
  std::vector<ValueInfo> inputs, outputs;
  std::map<std::string, std::string> metadata;
  std::size_t functions = 0;  // ops that the file defines itself; they are not read
  std::string hash;           // sha256 of the file and of the data outside it

  [[nodiscard]] std::int64_t opset() const;  // of ONNX's own ops; 0: not told
};

// Anything wrong with the file is a bad_input Error that names it. Data outside the file is read
// from its own folder alone.
[[nodiscard]] Model read_model(const std::filesystem::path& path);
// The same of a file's bytes; `name` stands in messages. They may not refer to data outside them.
[[nodiscard]] Model read_model(const std::string& name, std::span<const std::byte> bytes);

// A TensorProto by itself, as ONNX's test vectors have them.
[[nodiscard]] Array read_array(const std::filesystem::path& path);

// Bytes of weights that go into the file itself: a protobuf message has at most 2 GiB, and some are
// left for the rest.
inline constexpr std::size_t kMostInside = (std::size_t{2} << 30) - (std::size_t{64} << 20);

// Replaces the file at once. Where there are more bytes of weights than `most_inside`, they go to
// PATH.data beside it.
void write_model(const Model& model, const std::filesystem::path& path,
                 std::size_t most_inside = kMostInside);

}  // namespace ridgeline::onnx
