// DenseNet (Huang et al. 2016) as torchvision builds it: https://arxiv.org/abs/1608.06993

#include <fmt/core.h>

#include <array>

#include "models/blocks.h"

namespace ridgeline {
namespace {

struct Variant {
  const char *name, *description;
  std::int64_t growth;  // channels that each layer adds
  std::array<std::int64_t, 4> layers;
  std::int64_t first_channels;
};
constexpr std::array<Variant, 4> kVariants = {{
    {"densenet121", "58 layers, each sees all before it", 32, {6, 12, 24, 16}, 64},
    {"densenet161", "78 layers, wider", 48, {6, 12, 36, 24}, 96},
    {"densenet169", "82 layers", 32, {6, 12, 32, 32}, 64},
    {"densenet201", "98 layers", 32, {6, 12, 48, 32}, 64},
}};
constexpr std::int64_t kBottleneck = 4;  // width of a layer's 1x1 convolution / growth rate

ValueId norm_relu_conv(NetworkBuilder& builder, ValueId value, std::int64_t channels,
                       std::int64_t kernel, const std::string& path, const std::string& number) {
  value = builder.batch_norm(value, path + ".norm" + number);
  value = builder.relu(value, path + ".relu" + number);
  return builder.conv2d(value, channels,
                        {.kernel_h = kernel,
                         .kernel_w = kernel,
                         .padding = kernel / 2,
                         .bias = false,
                         .init = {.weights = LayerInit::Weights::he_normal_fan_in}},
                        path + ".conv" + number);
}

// Every layer sees all features before it and appends its own.
ValueId dense_layer(NetworkBuilder& builder, ValueId features, std::int64_t growth,
                    const std::string& path) {
  ValueId value = norm_relu_conv(builder, features, kBottleneck * growth, 1, path, "1");
  value = norm_relu_conv(builder, value, growth, 3, path, "2");
  return builder.concat({features, value}, path + ".cat");
}

ValueId build(NetworkBuilder& builder, ValueId image, const ModelConfig& config,
              const Variant& variant) {
  ValueId value = builder.conv2d(image, variant.first_channels,
                                 {.kernel_h = 7,
                                  .kernel_w = 7,
                                  .stride = 2,
                                  .padding = 3,
                                  .bias = false,
                                  .init = {.weights = LayerInit::Weights::he_normal_fan_in}},
                                 "features.conv0");
  value = builder.batch_norm(value, "features.norm0");
  value = builder.relu(value, "features.relu0");
  value = builder.max_pool(value, {.kernel = 3, .stride = 2, .padding = 1}, "features.pool0");
  for (std::size_t block = 0; block < variant.layers.size(); ++block) {
    for (std::int64_t i = 0; i < variant.layers[block]; ++i) {
      value = dense_layer(builder, value, variant.growth,
                          fmt::format("features.denseblock{}.denselayer{}", block + 1, i + 1));
    }
    if (block + 1 == variant.layers.size()) break;
    const std::string path = fmt::format("features.transition{}", block + 1);
    value = norm_relu_conv(builder, value, builder.shape(value)[1] / 2, 1, path, "");
    value = builder.average_pool(value, {.kernel = 2, .stride = 2}, path + ".pool");
  }
  value = builder.relu(builder.batch_norm(value, "features.norm5"), "relu");
  value = builder.flatten(builder.global_average_pool(value, "avgpool"), "flatten");
  return builder.linear(value, config.classes, "classifier", {.zero_bias = true});
}

}  // namespace

std::vector<ModelInfo> densenet_models() { return family_of("densenet", kVariants, build); }

}  // namespace ridgeline
