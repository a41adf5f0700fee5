#pragma once

// Names of layers, as PyTorch's modules have them, from what an exporter leaves of them.

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "onnx/file.h"

namespace ridgeline::onnx {

// "features.0" of the parameter "features.0.weight"; empty where the name tells no layer.
[[nodiscard]] std::string layer_of_parameter(std::string_view parameter);

// Stands before the number of a layer's second node and of further ones: "block.act#2".
inline constexpr char kNodeNumber = '#';

// The path of a node's module: of PyTorch 2's metadata, else of a name like
// "/layer1/layer1.0/conv1/Conv", else the name itself without its number.
[[nodiscard]] std::string layer_of_node(const OpNode& node);

// The path of the module that a node belongs to; empty: not known.
[[nodiscard]] std::string module_of_node(const OpNode& node);

// Names that are in use; a name for a new layer gets a number where it must.
class LayerNames {
 public:
  [[nodiscard]] bool is_free(const std::string& name) const { return !used_.contains(name); }
  // "name", or "name_1" and so on.
  [[nodiscard]] std::string take(const std::string& name);

 private:
  std::set<std::string> used_;
  std::map<std::string, int> numbers_;  // the last one given
};

}  // namespace ridgeline::onnx
