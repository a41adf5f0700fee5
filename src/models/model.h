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
  [[nodiscard]] double probability(std::string_view option_name) const;
  [[nodiscard]] ActivationAttributes activation(std::string_view option_name) const;
};

// The images and classes a model is made for; what a config starts from.
struct ModelImage {
  std::int64_t channels, height, width, classes;
};
inline constexpr ModelImage kDigitImage{1, 28, 28, 10};
inline constexpr ModelImage kImageNetImage{3, 224, 224, 1000};

struct ModelInfo {
  std::string_view name, description;
  ModelImage image = kDigitImage;
  std::vector<ModelOption> options = {};
  // Adds the network to the builder; image (N, C, H, W) in, logits (N, classes) out.
  ValueId (*build)(NetworkBuilder& builder, ValueId image, const ModelConfig& config) = nullptr;
};

[[nodiscard]] std::span<const ModelInfo> all_models();
// Throws bad_input with the nearest name for an unknown one.
[[nodiscard]] const ModelInfo& find_model(std::string_view name);
// A model of the zoo with its own image size and classes. Throws as find_model.
[[nodiscard]] ModelConfig default_config(std::string_view name);
// Checks that the model exists and has the options named; throws bad_input.
void check_config(const ModelConfig& config);

[[nodiscard]] ModelInfo mlp_model();
[[nodiscard]] ModelInfo mnist_cnn_model();
[[nodiscard]] ModelInfo resnet18_model();
[[nodiscard]] ModelInfo resnet34_model();
[[nodiscard]] ModelInfo resnet50_model();
[[nodiscard]] ModelInfo resnet101_model();
[[nodiscard]] ModelInfo resnet152_model();
[[nodiscard]] ModelInfo mobilenet_v2_model();
[[nodiscard]] ModelInfo squeezenet1_0_model();
[[nodiscard]] ModelInfo squeezenet1_1_model();
[[nodiscard]] ModelInfo densenet121_model();
[[nodiscard]] ModelInfo densenet161_model();
[[nodiscard]] ModelInfo densenet169_model();
[[nodiscard]] ModelInfo densenet201_model();

}  // namespace ridgeline
