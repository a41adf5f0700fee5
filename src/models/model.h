#pragma once

// The model zoo: builders by name, each with its options.

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/builder.h"

namespace ridgeline {

// One option of a model: `--set NAME=VALUE`.
struct ModelOption {
  std::string_view name, fallback, meaning;
};

// What to build: a model of the zoo for images and classes of a size.
struct ModelConfig {
  std::string name;
  std::int64_t channels = 1, height = 28, width = 28;
  std::int64_t classes = 10;
  InitScheme init = InitScheme::pytorch;
  std::map<std::string, std::string> options;  // only those that differ from the fallback

  // The value of an option, checked: whole numbers above 0, a list of them, a name.
  [[nodiscard]] std::string option(std::string_view option_name) const;
  [[nodiscard]] std::int64_t number(std::string_view option_name) const;
  [[nodiscard]] std::vector<std::int64_t> numbers(std::string_view option_name) const;
  [[nodiscard]] ActivationAttributes activation(std::string_view option_name) const;
};

struct ModelInfo {
  std::string_view name, description;
  std::vector<ModelOption> options;
  // Adds the network to the builder; image (N, C, H, W) in, logits (N, classes) out.
  ValueId (*build)(NetworkBuilder& builder, ValueId image, const ModelConfig& config);
};

[[nodiscard]] std::span<const ModelInfo> all_models();
// Throws bad_input with the nearest name for an unknown one.
[[nodiscard]] const ModelInfo& find_model(std::string_view name);
// Checks that the model exists and has the options named; throws bad_input.
void check_config(const ModelConfig& config);

[[nodiscard]] ModelInfo mlp_model();
[[nodiscard]] ModelInfo mnist_cnn_model();

}  // namespace ridgeline
