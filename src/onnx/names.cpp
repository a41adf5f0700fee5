#include "onnx/names.h"

#include <algorithm>
#include <array>
#include <vector>

namespace ridgeline::onnx {
namespace {

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-';
}

// Names are printed, written to files and matched by patterns.
std::string plain(std::string_view text) {
  std::string made;
  for (const char c : text) {
    const char next = c == '/' || c == ':' ? '.' : is_plain(c) ? c : '_';
    if (next == '.' && (made.empty() || made.back() == '.')) continue;
    made += next;
  }
  while (!made.empty() && made.back() == '.') made.pop_back();
  return made;
}

std::vector<std::string_view> parts_of(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const std::size_t slash = std::min(path.find('/'), path.size());
    if (slash > 0) parts.push_back(path.substr(0, slash));
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return parts;
}

// "/layer1/layer1.0/conv1/Conv": modules within each other, then the op. A child of a container
// repeats its parent's name: "layer1.0" within "layer1".
std::string module_path(std::string_view name) {
  std::vector<std::string_view> parts = parts_of(name);
  if (!parts.empty()) parts.pop_back();
  std::string path, last;
  for (const std::string_view part : parts) {
    const std::string child = plain(part);
    if (!last.empty() && child.starts_with(last + ".")) {
      path += child.substr(last.size());
    } else {
      path += (path.empty() ? "" : ".") + child;
    }
    last = child;
  }
  return path;
}

// Ops that are written as functions: they stand within a module that is not their own.
bool is_function(std::string_view type) {
  static constexpr std::array<std::string_view, 10> kFunctions = {
      "Add", "Mul", "Concat", "Flatten", "Reshape", "Split", "Slice", "Transpose", "Pad", "Resize"};
  return std::find(kFunctions.begin(), kFunctions.end(), type) != kFunctions.end();
}

// Without what tells our exporter's nodes of one layer apart.
std::string_view without_number(std::string_view name) {
  const std::size_t mark = name.rfind(kNodeNumber);
  if (mark == std::string_view::npos || mark + 1 == name.size()) return name;
  const bool number = name.find_first_not_of("0123456789", mark + 1) == std::string_view::npos;
  return number ? name.substr(0, mark) : name;
}

std::string lower(std::string_view text) {
  std::string made(text);
  for (char& c : made) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return made;
}

}  // namespace

std::string layer_of_parameter(std::string_view parameter) {
  const std::size_t dot = parameter.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return {};
  const std::string_view layer = parameter.substr(0, dot), last = parameter.substr(dot + 1);
  static constexpr std::array<std::string_view, 4> kKinds = {"weight", "bias", "running_mean",
                                                             "running_var"};
  const bool known = std::find(kKinds.begin(), kKinds.end(), last) != kKinds.end();
  if (!known || !std::all_of(layer.begin(), layer.end(), is_plain)) return {};
  return std::string(layer);
}

std::string module_of_node(const OpNode& node) {
  std::string module = plain(node.scope);
  if (module.empty() && node.name.starts_with('/')) module = module_path(node.name);
  return module;
}

std::string layer_of_node(const OpNode& node) {
  const std::string module = module_of_node(node);
  if (!module.empty()) return is_function(node.type) ? module + "." + lower(node.type) : module;
  if (node.name.starts_with('/')) return lower(node.type);  // of the network itself
  std::string name = plain(without_number(node.name));
  if (name.empty() && !node.outputs.empty()) name = plain(node.outputs[0]);
  return name.empty() ? lower(node.type) : name;
}

std::string LayerNames::take(const std::string& name) {
  std::string made = name;
  while (!used_.insert(made).second) made = name + "_" + std::to_string(++numbers_[name]);
  return made;
}

}  // namespace ridgeline::onnx
