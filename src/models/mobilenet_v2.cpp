// MobileNetV2 (Sandler et al. 2018) as torchvision builds it: https://arxiv.org/abs/1801.04381

#include <fmt/core.h>

#include <array>

#include "models/model.h"

namespace ridgeline {
namespace {

constexpr ActivationAttributes kRelu6{.kind = ActivationKind::relu6};

ValueId conv_bn(NetworkBuilder& builder, ValueId value, std::int64_t channels, std::int64_t kernel,
                std::int64_t stride, std::int64_t groups, const std::string& conv,
                const std::string& norm) {
  value = builder.conv2d(value, channels,
                         {.kernel_h = kernel,
                          .kernel_w = kernel,
                          .stride = stride,
                          .padding = kernel / 2,
                          .groups = groups,
                          .bias = false,
                          .init = {.weights = LayerInit::Weights::he_normal_fan_out}},
                         conv);
  return builder.batch_norm(value, norm);
}

// Convolution, batch norm, ReLU6: the children 0, 1 and 2 of `path`.
ValueId conv_bn_relu6(NetworkBuilder& builder, ValueId value, std::int64_t channels,
                      std::int64_t kernel, std::int64_t stride, std::int64_t groups,
                      const std::string& path) {
  value = conv_bn(builder, value, channels, kernel, stride, groups, path + ".0", path + ".1");
  return builder.activation(value, kRelu6, path + ".2");
}

// Widen by 1x1, filter each channel, narrow by 1x1 without activation.
ValueId inverted_residual(NetworkBuilder& builder, ValueId value, std::int64_t channels,
                          std::int64_t stride, std::int64_t expansion, const std::string& path) {
  const std::int64_t before = builder.shape(value)[1], hidden = before * expansion;
  ValueId main = value;
  std::int64_t child = 0;
  const auto next = [&] { return fmt::format("{}.conv.{}", path, child++); };
  if (expansion > 1) main = conv_bn_relu6(builder, main, hidden, 1, 1, 1, next());
  main = conv_bn_relu6(builder, main, hidden, 3, stride, hidden, next());
  const std::string conv = next(), norm = next();
  main = conv_bn(builder, main, channels, 1, 1, 1, conv, norm);
  return stride == 1 && before == channels ? builder.add(value, main, path + ".add") : main;
}

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

ValueId build(NetworkBuilder& builder, ValueId image, const ModelConfig& config) {
  std::int64_t child = 0;
  const auto next = [&] { return fmt::format("features.{}", child++); };
  ValueId value = conv_bn_relu6(builder, image, 32, 3, 2, 1, next());
  for (const Stage& stage : kStages) {
    for (std::int64_t i = 0; i < stage.blocks; ++i) {
      value = inverted_residual(builder, value, stage.channels, i == 0 ? stage.stride : 1,
                                stage.expansion, next());
    }
  }
  value = conv_bn_relu6(builder, value, 1280, 1, 1, 1, next());
  value = builder.flatten(builder.global_average_pool(value, "avgpool"), "flatten");
  value = builder.dropout(value, config.probability("dropout"), "classifier.0");
  return builder.linear(value, config.classes, "classifier.1",
                        {.weights = LayerInit::Weights::normal_one_percent, .zero_bias = true});
}

}  // namespace

ModelInfo mobilenet_v2_model() {
  return {.name = "mobilenet_v2",
          .description = "inverted residuals with depthwise convolutions",
          .image = kImageNetImage,
          .options = {{"dropout", "0.2", "probability of dropping before the classifier"}},
          .build = build};
}

}  // namespace ridgeline
