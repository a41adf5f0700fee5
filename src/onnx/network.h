#pragma once

// The network of an ONNX file as a source of ModelConfig: what `MODEL` means where it is a path.

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/model.h"
#include "onnx/importer.h"

namespace ridgeline::onnx {

// Among the metadata of a file: a JSON list with a name for each class.
inline constexpr const char* kClassNames = "class_names";

// Whether a model's name is a path to a file.
[[nodiscard]] bool is_network_file(std::string_view model);

// A model of the zoo by its name, or the network of a file, with its own image size and classes.
// Throws bad_input; of a file, the first node that is not supported.
[[nodiscard]] ModelConfig named_config(const std::string& model);

// The network of a file whose bytes are in memory. While the source lives, its path() is the name
// of a model, everywhere in this process and nowhere else; `name` is what results call it. Throws
// bad_input.
[[nodiscard]] std::shared_ptr<const NetworkSource> hold_network(const std::string& name,
                                                                std::span<const std::byte> bytes);

// The first 16 digits of the hash of a file's contents, by which results know it.
[[nodiscard]] std::string short_hash(const NetworkSource& source);

// What tells networks apart: the zoo's name, or of a file its name and its hash.
[[nodiscard]] std::string key_of_model(const std::string& model);

// A file as far as it was understood.
struct Survey {
  std::int64_t opset = 0;
  std::string producer, hash;
  std::size_t nodes = 0;
  std::vector<Refusal> refusals;  // in the file's order
  std::string supported;          // the ops, for people
};
// Throws bad_input where the file itself cannot be read or is no image classifier.
[[nodiscard]] Survey survey_file(const std::filesystem::path& path);

}  // namespace ridgeline::onnx
