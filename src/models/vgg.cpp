// VGG (Simonyan and Zisserman 2014) as torchvision builds it, with or without batch norm:
// https://arxiv.org/abs/1409.1556

#include <fmt/core.h>

#include <array>

#include "models/blocks.h"

namespace ridgeline {
namespace {

struct Variant {
  const char *name, *description;
  std::array<std::int64_t, 5> layers;  // convolutions before each pooling
  bool norms = false;
};

constexpr std::array<Variant, 8> kVariants = {{
    {"vgg11", "8 convolutions of 3x3, three dense layers", {1, 1, 2, 2, 2}},
    {"vgg11_bn", "vgg11 with batch norms", {1, 1, 2, 2, 2}, true},
    {"vgg13", "10 convolutions", {2, 2, 2, 2, 2}},
    {"vgg13_bn", "vgg13 with batch norms", {2, 2, 2, 2, 2}, true},
    {"vgg16", "13 convolutions", {2, 2, 3, 3, 3}},
    {"vgg16_bn", "vgg16 with batch norms", {2, 2, 3, 3, 3}, true},
    {"vgg19", "16 convolutions", {2, 2, 4, 4, 4}},
    {"vgg19_bn", "vgg19 with batch norms", {2, 2, 4, 4, 4}, true},
}};
constexpr std::array<std::int64_t, 5> kChannels = {64, 128, 256, 512, 512};

ValueId hidden_layer(NetworkBuilder& builder, ValueId value, double dropout, int child) {
  const auto path = [child](int i) { return fmt::format("classifier.{}", child + i); };
  value = builder.relu(builder.linear(value, 4096, path(0), kSmallNormal), path(1));
  return builder.dropout(value, dropout, path(2));
}

ValueId build(NetworkBuilder& builder, ValueId image, const ModelConfig& config,
              const Variant& variant) {
  ValueId value = image;
  int child = 0;
  const auto next = [&] { return fmt::format("features.{}", child++); };
  for (std::size_t stage = 0; stage < kChannels.size(); ++stage) {
    for (std::int64_t i = 0; i < variant.layers[stage]; ++i) {
      value =
          builder.conv2d(value, kChannels[stage],
                         {.kernel_h = 3, .kernel_w = 3, .padding = 1, .init = kHeFanOut}, next());
      if (variant.norms) value = builder.batch_norm(value, next());
      value = builder.relu(value, next());
    }
    value = builder.max_pool(value, {}, next());
  }
  value = builder.flatten(builder.adaptive_average_pool(value, 7, 7, "avgpool"), "flatten");
  const double dropout = config.probability("dropout");
  value = hidden_layer(builder, value, dropout, 0);
  value = hidden_layer(builder, value, dropout, 3);
  return builder.linear(value, config.classes, "classifier.6", kSmallNormal);
}

}  // namespace

std::vector<ModelInfo> vgg_models() {
  return family_of("vgg", kVariants, build, {dropout_option("0.5")});
}

}  // namespace ridgeline
