#pragma once

// Small ONNX models for tests, node by node, and files of bytes that no exporter would write.

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onnx/file.h"

namespace ridgeline::testing {

// Adds nodes one behind the other; a node without a name for its output gets one.
class OnnxMaker {
 public:
  // An image of this size with a free batch; opset 17.
  explicit OnnxMaker(std::vector<std::int64_t> image, std::int64_t opset = 17);

  std::string node(const std::string& type, std::vector<std::string> inputs,
                   std::vector<onnx::Attribute> attributes = {}, std::string name = {});
  // A node with several outputs.
  std::vector<std::string> nodes(const std::string& type, std::vector<std::string> inputs,
                                 std::size_t outputs, std::vector<onnx::Attribute> attributes = {});
  // Numbers that follow from the name.
  std::string weights(const std::string& name, onnx::Dims dims);
  std::string numbers(const std::string& name, onnx::Dims dims, std::vector<double> values);
  std::string number(double value);
  std::string integers(onnx::Dims values);

  // Layers with weights "NAME.weight" and so on.
  std::string conv(const std::string& src, const std::string& name, onnx::Dims weights,
                   std::vector<onnx::Attribute> attributes = {}, bool bias = true);
  std::string norm(const std::string& src, const std::string& name, std::int64_t channels);
  std::string linear(const std::string& src, const std::string& name, std::int64_t inputs,
                     std::int64_t features);
  // Pool, flatten and linear layer "fc": what a classifier ends with.
  void classify(const std::string& src, std::int64_t channels, std::int64_t classes = 5);
  void output(const std::string& name);

  [[nodiscard]] onnx::Model& model() { return model_; }
  std::filesystem::path write(const std::filesystem::path& path);

 private:
  onnx::Model model_;
  int names_ = 0;
};

[[nodiscard]] onnx::Attribute attribute(std::string name, std::int64_t value);
[[nodiscard]] onnx::Attribute attribute(std::string name, onnx::Dims values);
[[nodiscard]] onnx::Attribute attribute(std::string name, double value);
[[nodiscard]] onnx::Attribute attribute(std::string name, const char* value);

// Protobuf by hand: a number, and bytes that may be a message.
[[nodiscard]] std::string proto_number(int field, std::uint64_t value);
[[nodiscard]] std::string proto_bytes(int field, std::string_view bytes);

// A whole file around one initializer, "w" of four floats, as these fields tell it.
[[nodiscard]] std::string model_with_tensor(const std::string& tensor_fields);

// A folder that goes away with the test.
class OnnxFolder {
 public:
  OnnxFolder();
  ~OnnxFolder();
  OnnxFolder(const OnnxFolder&) = delete;
  OnnxFolder& operator=(const OnnxFolder&) = delete;
  [[nodiscard]] std::filesystem::path operator/(const std::string& name) const {
    return path_ / name;
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace ridgeline::testing
