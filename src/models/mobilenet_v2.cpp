// MobileNetV2 (Sandler et al. 2018) as torchvision builds it: https://arxiv.org/abs/1801.04381

#include <fmt/core.h>

#include <array>

#include "models/blocks.h"

namespace ridgeline {
namespace {

struct Stage {
  std::int64_t expansion, channels, blocks, stride;
};
constexpr std::array<Stage, 7> kStages = {{{1, 16, 1, 1},
                                           {6, 24, 2, 2},
                                           {6, 32, 3, 2},
                                           {6, 64, 4, 2},
                                           {6, 96, 3, 1},
                                           {6, 160, 3, 2},
                                           {6, 320, 1, 1}}};
constexpr auto kRelu6 = ActivationKind::relu6;

// Widen by 1x1, filter each channel, narrow by 1x1 without activation.
ValueId inverted_residual(NetworkBuilder& builder, ValueId value, std::int64_t channels,
                          std::int64_t stride, std::int64_t expansion, const std::string& path) {
  const std::int64_t before = builder.shape(value)[1], hidden = before * expansion;
  ValueId main = value;
  int child = 0;
  const auto next = [&] { return fmt::format("{}.conv.{}", path, child++); };
  if (expansion > 1) {
    main = conv_norm(builder, main, {.channels = hidden, .activation = kRelu6}, next());
  }
  main = conv_norm(
      builder, main,
      {.channels = hidden, .kernel = 3, .stride = stride, .groups = hidden, .activation = kRelu6},
      next());
  const std::string conv = next(), norm = next();
  main = conv_norm(builder, main, {.channels = channels}, {conv, norm, {}});
  return stride == 1 && before == channels ? builder.add(value, main, path + ".add") : main;
}

ValueId build(NetworkBuilder& builder, ValueId image, const ModelConfig& config) {
  int child = 0;
  const auto next = [&] { return fmt::format("features.{}", child++); };
  ValueId value = conv_norm(
      builder, image, {.channels = 32, .kernel = 3, .stride = 2, .activation = kRelu6}, next());
  for (const Stage& stage : kStages) {
    for (std::int64_t i = 0; i < stage.blocks; ++i) {
      value = inverted_residual(builder, value, stage.channels, i == 0 ? stage.stride : 1,
                                stage.expansion, next());
    }
  }
  value = conv_norm(builder, value, {.channels = 1280, .activation = kRelu6}, next());
  value =
      builder.dropout(channel_means(builder, value), config.probability("dropout"), "classifier.0");
  return builder.linear(value, config.classes, "classifier.1", kSmallNormal);
}

}  // namespace

std::vector<ModelInfo> mobilenet_v2_models() {
  return {{.name = "mobilenet_v2",
           .family = "mobilenet",
           .description = "inverted residuals, depthwise convolutions",
           .image = kImageNetImage,
           .options = {dropout_option("0.2")},
           .build = build}};
}

}  // namespace ridgeline
