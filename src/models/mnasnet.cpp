// MnasNet-B1 (Tan et al. 2018) as torchvision builds it: https://arxiv.org/abs/1807.11626

#include <fmt/core.h>

#include <array>
#include <cmath>

#include "models/blocks.h"

namespace ridgeline {
namespace {

struct Variant {
  const char *name, *description;
  double width;  // factor of the channels
};
constexpr std::array<Variant, 4> kVariants = {{
    {"mnasnet0_5", "half as wide as mnasnet1_0", 0.5},
    {"mnasnet0_75", "three quarters as wide", 0.75},
    {"mnasnet1_0", "inverted residuals with 3x3 and 5x5", 1.0},
    {"mnasnet1_3", "1.3 times as wide", 1.3},
}};

struct Stage {
  std::int64_t channels, kernel, stride, expansion, blocks;
};
constexpr std::array<Stage, 6> kStages = {{{24, 3, 2, 3, 3},
                                           {40, 5, 2, 3, 3},
                                           {80, 5, 2, 6, 3},
                                           {96, 3, 1, 6, 2},
                                           {192, 5, 2, 6, 4},
                                           {320, 3, 1, 6, 1}}};
constexpr NormOptions kNorm{.momentum = 0.0003};

// Layers as children of `path` that count on from layer to layer.
class Children {
 public:
  Children(NetworkBuilder& builder, std::string path) : builder_(builder), path_(std::move(path)) {}
  std::string next() { return fmt::format("{}.{}", path_, child_++); }
  ValueId conv(ValueId value, ConvNorm layer) {
    layer.norm = kNorm;
    ConvNormNames names{.conv = next(), .norm = next(), .activation = {}};
    if (layer.activation) names.activation = next();
    return conv_norm(builder_, value, layer, names);
  }

 private:
  NetworkBuilder& builder_;
  std::string path_;
  int child_ = 0;
};

// Widen by 1x1, filter each channel, narrow by 1x1 without activation.
ValueId inverted_residual(NetworkBuilder& builder, ValueId value, const Stage& stage,
                          std::int64_t channels, std::int64_t stride, const std::string& path) {
  constexpr auto kRelu = ActivationKind::relu;
  const std::int64_t before = builder.shape(value)[1], inner = before * stage.expansion;
  Children layers(builder, path + ".layers");
  ValueId main = layers.conv(value, {.channels = inner, .activation = kRelu});
  main = layers.conv(main, {.channels = inner,
                            .kernel = stage.kernel,
                            .stride = stride,
                            .groups = inner,
                            .activation = kRelu});
  main = layers.conv(main, {.channels = channels});
  const bool residual = stride == 1 && before == channels;
  return residual ? builder.add(main, value, path + ".add") : main;
}

ValueId build(NetworkBuilder& builder, ValueId image, const ModelConfig& config,
              const Variant& variant) {
  constexpr auto kRelu = ActivationKind::relu;
  const auto scaled = [&](std::int64_t channels) {
    return multiple_of_8(static_cast<double>(channels) * variant.width);
  };
  const std::int64_t first = scaled(32);
  Children layers(builder, "layers");
  ValueId value =
      layers.conv(image, {.channels = first, .kernel = 3, .stride = 2, .activation = kRelu});
  value =
      layers.conv(value, {.channels = first, .kernel = 3, .groups = first, .activation = kRelu});
  value = layers.conv(value, {.channels = scaled(16)});
  for (const Stage& stage : kStages) {
    const std::string path = layers.next();
    for (std::int64_t i = 0; i < stage.blocks; ++i) {
      value = inverted_residual(builder, value, stage, scaled(stage.channels),
                                i == 0 ? stage.stride : 1, fmt::format("{}.{}", path, i));
    }
  }
  value = layers.conv(value, {.channels = 1280, .activation = kRelu});
  value =
      builder.dropout(channel_means(builder, value), config.probability("dropout"), "classifier.0");
  return builder.linear(value, config.classes, "classifier.1",
                        {.weights = LayerInit::Weights::uniform,
                         .amount = std::sqrt(3.0 / static_cast<double>(config.classes)),
                         .zero_bias = true});
}

}  // namespace

std::vector<ModelInfo> mnasnet_models() {
  return family_of("mnasnet", kVariants, build, {dropout_option("0.2")});
}

}  // namespace ridgeline
