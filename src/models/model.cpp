#include "models/model.h"

#include <algorithm>
#include <array>

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
  for (const ModelOption& known : find_model(name).options) {
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
  static const std::array kModels = {
      mlp_model(),           mnist_cnn_model(),     resnet18_model(),    resnet34_model(),
      resnet50_model(),      resnet101_model(),     resnet152_model(),   mobilenet_v2_model(),
      squeezenet1_0_model(), squeezenet1_1_model(), densenet121_model(), densenet161_model(),
      densenet169_model(),   densenet201_model()};
  return kModels;
}

const ModelInfo& find_model(std::string_view name) {
  std::vector<std::string_view> names;
  for (const ModelInfo& model : all_models()) {
    if (model.name == name) return model;
    names.push_back(model.name);
  }
  bad_input("unknown model '{}'{}; known: {}", name, did_you_mean(name, names),
            joined(names, ", "));
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
  const ModelInfo& model = find_model(config.name);
  std::vector<std::string_view> names;
  for (const ModelOption& option : model.options) names.push_back(option.name);
  for (const auto& [name, value] : config.options) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      bad_input("model {} has no option '{}'{}; it has: {}", config.name, name,
                did_you_mean(name, names), joined(names, ", "));
    }
  }
}

}  // namespace ridgeline
