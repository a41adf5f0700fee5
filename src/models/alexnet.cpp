// AlexNet (Krizhevsky 2014, "One weird trick") as torchvision builds it:
// https://arxiv.org/abs/1404.5997

#include <fmt/core.h>

#include <array>

#include "models/blocks.h"

namespace ridgeline {
namespace {

struct Layer {
  std::int64_t channels, kernel, stride, padding;
  bool pooled = false;
};
constexpr std::array<Layer, 5> kLayers = {{{64, 11, 4, 2, true},
                                           {192, 5, 1, 2, true},
                                           {384, 3, 1, 1},
                                           {256, 3, 1, 1},
                                           {256, 3, 1, 1, true}}};

ValueId build(NetworkBuilder& builder, ValueId image, const ModelConfig& config) {
  ValueId value = image;
  int child = 0;
  const auto next = [&] { return fmt::format("features.{}", child++); };
  for (const Layer& layer : kLayers) {
    value = builder.conv2d(value, layer.channels,
                           {.kernel_h = layer.kernel,
                            .kernel_w = layer.kernel,
                            .stride = layer.stride,
                            .padding = layer.padding},
                           next());
    value = builder.relu(value, next());
    if (layer.pooled) value = builder.max_pool(value, {.kernel = 3, .stride = 2}, next());
  }
  value = builder.flatten(builder.adaptive_average_pool(value, 6, 6, "avgpool"), "flatten");
  const double dropout = config.probability("dropout");
  value = builder.dropout(value, dropout, "classifier.0");
  value = builder.relu(builder.linear(value, 4096, "classifier.1"), "classifier.2");
  value = builder.dropout(value, dropout, "classifier.3");
  value = builder.relu(builder.linear(value, 4096, "classifier.4"), "classifier.5");
  return builder.linear(value, config.classes, "classifier.6");
}

}  // namespace

std::vector<ModelInfo> alexnet_models() {
  return {{.name = "alexnet",
           .family = "alexnet",
           .description = "5 convolutions, three dense layers",
           .image = kImageNetImage,
           .options = {dropout_option("0.5")},
           .build = build}};
}

}  // namespace ridgeline
