#include "models/model.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/error.h"
#include "base/parse.h"
#include "base/suggest.h"
#include "base/text.h"

namespace ridgeline {
namespace {

std::int64_t parse_number(const ModelConfig& config, std::string_view option,
                          std::string_view text) {
  const auto number = number_in<std::int64_t>(text);
  if (!number || *number < 0) {
    bad_input("{}: setting {} needs whole numbers, not '{}'", config.name, option, text);
  }
  return *number;
}

}  // namespace

std::string ModelConfig::option(std::string_view option_name) const {
  const auto found = options.find(std::string(option_name));
  if (found != options.end()) return found->second;
  for (const ModelOption& known : options_of(*this)) {
    if (known.name == option_name) return std::string(known.fallback);
  }
  fail("model {} has no option {}", name, option_name);
}

std::int64_t ModelConfig::number(std::string_view option_name) const {
  return parse_number(*this, option_name, option(option_name));
}

std::vector<std::int64_t> ModelConfig::numbers(std::string_view option_name) const {
  const std::string text = option(option_name);
  std::vector<std::int64_t> list;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    list.push_back(
        parse_number(*this, option_name, std::string_view(text).substr(begin, end - begin)));
    begin = end + 1;
  }
  return list;
}

double ModelConfig::probability(std::string_view option_name) const {
  const std::string text = option(option_name);
  const auto number = number_in<double>(text);
  if (!number || *number < 0.0 || *number >= 1.0) {
    bad_input("{}: setting {} needs a probability of at least 0 and below 1, not '{}'", name,
              option_name, text);
  }
  return *number;
}

ActivationAttributes ModelConfig::activation(std::string_view option_name) const {
  const std::string text = option(option_name);
  static constexpr std::array kKinds = {ActivationKind::relu,       ActivationKind::relu6,
                                        ActivationKind::leaky_relu, ActivationKind::sigmoid,
                                        ActivationKind::tanh,       ActivationKind::silu};
  std::vector<std::string_view> names;
  for (const ActivationKind kind : kKinds) {
    if (name_of(kind) == text) return {.kind = kind};
    names.push_back(name_of(kind));
  }
  bad_input("{}: unknown activation '{}'{}; known: {}", name, text, did_you_mean(text, names),
            joined(names, ", "));
}

std::span<const ModelInfo> all_models() {
  static const std::vector<ModelInfo> kModels = [] {
    std::vector<ModelInfo> models;
    for (const auto family :
         {mlp_models, mnist_cnn_models, alexnet_models, convnext_models, densenet_models,
          efficientnet_models, googlenet_models, inception_models, mnasnet_models,
          mobilenet_v2_models, mobilenet_v3_models, regnet_models, resnet_models, shufflenet_models,
          squeezenet_models, vgg_models}) {
      std::ranges::move(family(), std::back_inserter(models));
    }
    return models;
  }();
  return kModels;
}

const ModelInfo& find_model(std::string_view name) {
  std::vector<std::string_view> names;
  for (const ModelInfo& model : all_models()) {
    if (model.name == name) return model;
    names.push_back(model.name);
  }
  bad_input("unknown model '{}'{}; 'ridgeline models' lists all", name, did_you_mean(name, names));
}

ModelConfig default_config(std::string_view name) {
  const ModelImage& image = find_model(name).image;
  ModelConfig config;
  config.name = std::string(name);
  config.channels = image.channels;
  config.height = image.height;
  config.width = image.width;
  config.classes = image.classes;
  return config;
}

void check_config(const ModelConfig& config) {
  std::vector<std::string_view> names;
  for (const ModelOption& option : options_of(config)) names.push_back(option.name);
  for (const auto& [name, value] : config.options) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      bad_input("model {} has no option '{}'{}; it has: {}", config.name, name,
                did_you_mean(name, names), names.empty() ? "none" : joined(names, ", "));
    }
  }
}

std::span<const ModelOption> options_of(const ModelConfig& config) {
  if (config.source) return config.source->options();
  return find_model(config.name).options;
}

ValueId build_network(NetworkBuilder& builder, ValueId image, const ModelConfig& config) {
  if (config.source) return config.source->build(builder, image, config);
  return find_model(config.name).build(builder, image, config);
}

void drop_nothing(ModelConfig& config) {
  for (const ModelOption& option : options_of(config)) {
    if (option.name == "stochastic_depth" || option.name.starts_with("dropout")) {
      config.options[std::string(option.name)] = "0";
    }
  }
}

}  // namespace ridgeline
