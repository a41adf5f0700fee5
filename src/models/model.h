#pragma once

// The model zoo: builders by name, each with its options.

#include <functional>
#include <map>
#include <memory>
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

struct ModelConfig;

// A network that comes from a file instead of the zoo.
class NetworkSource {
 public:
  virtual ~NetworkSource() = default;
  // Adds the network to the builder as ModelInfo::build does. Parameters begin as the file has
  // them; those of the last layer do not where the config asks for another number of classes.
  virtual ValueId build(NetworkBuilder& builder, ValueId image,
                        const ModelConfig& config) const = 0;
  [[nodiscard]] virtual const std::string& path() const = 0;
  // Of the file's contents: files that differ are different networks whatever their names.
  [[nodiscard]] virtual const std::string& hash() const = 0;
  [[nodiscard]] virtual std::span<const ModelOption> options() const = 0;
  // One for each class; empty where the file does not tell them.
  [[nodiscard]] virtual std::vector<std::string> class_names() const = 0;
};

// What to build: a model of the zoo or of a file, for images and classes of a size.
struct ModelConfig {
  std::string name;  // in the zoo, or of the file without its folder and ending
  std::shared_ptr<const NetworkSource> source = {};  // nothing: the zoo
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
  std::string_view name, family, description;
  ModelImage image = kDigitImage;
  std::vector<ModelOption> options = {};
  // Adds the network to the builder; image (N, C, H, W) in, logits (N, classes) out.
  std::function<ValueId(NetworkBuilder& builder, ValueId image, const ModelConfig& config)> build;
};

// Families one after the other.
[[nodiscard]] std::span<const ModelInfo> all_models();
// Throws bad_input with the nearest name for an unknown one.
[[nodiscard]] const ModelInfo& find_model(std::string_view name);
// A model of the zoo with its own image size and classes. Throws as find_model.
[[nodiscard]] ModelConfig default_config(std::string_view name);
// Checks that the model exists and has the options named; throws bad_input.
void check_config(const ModelConfig& config);

// Options of the model of the zoo, or of the file's network.
[[nodiscard]] std::span<const ModelOption> options_of(const ModelConfig& config);
// Adds the network to the builder, wherever it comes from.
ValueId build_network(NetworkBuilder& builder, ValueId image, const ModelConfig& config);

// Switches dropout and stochastic depth off: a step is then a function of weights and batch.
void drop_nothing(ModelConfig& config);

[[nodiscard]] std::vector<ModelInfo> mlp_models();
[[nodiscard]] std::vector<ModelInfo> mnist_cnn_models();
[[nodiscard]] std::vector<ModelInfo> alexnet_models();
[[nodiscard]] std::vector<ModelInfo> convnext_models();
[[nodiscard]] std::vector<ModelInfo> densenet_models();
[[nodiscard]] std::vector<ModelInfo> efficientnet_models();
[[nodiscard]] std::vector<ModelInfo> googlenet_models();
[[nodiscard]] std::vector<ModelInfo> inception_models();
[[nodiscard]] std::vector<ModelInfo> mnasnet_models();
[[nodiscard]] std::vector<ModelInfo> mobilenet_v2_models();
[[nodiscard]] std::vector<ModelInfo> mobilenet_v3_models();
[[nodiscard]] std::vector<ModelInfo> regnet_models();
[[nodiscard]] std::vector<ModelInfo> resnet_models();
[[nodiscard]] std::vector<ModelInfo> shufflenet_models();
[[nodiscard]] std::vector<ModelInfo> squeezenet_models();
[[nodiscard]] std::vector<ModelInfo> vgg_models();

}  // namespace ridgeline
