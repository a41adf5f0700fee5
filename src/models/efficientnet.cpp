// EfficientNet (Tan and Le 2019) and EfficientNetV2 (2021) as torchvision builds them:
// https://arxiv.org/abs/1905.11946, https://arxiv.org/abs/2104.00298

#include <fmt/core.h>

#include <array>
#include <cmath>
#include <span>

#include "models/blocks.h"

namespace ridgeline {
namespace {

struct Stage {
  std::int64_t expansion, kernel, stride, channels, blocks;
  bool fused = false;  // one convolution in place of the 1x1 and the depthwise one
};

constexpr std::array<Stage, 7> kStages = {{{1, 3, 1, 16, 1},
                                           {6, 3, 2, 24, 2},
                                           {6, 5, 2, 40, 2},
                                           {6, 3, 2, 80, 3},
                                           {6, 5, 1, 112, 3},
                                           {6, 5, 2, 192, 4},
                                           {6, 3, 1, 320, 1}}};
constexpr std::array<Stage, 6> kStagesV2S = {{{1, 3, 1, 24, 2, true},
                                              {4, 3, 2, 48, 4, true},
                                              {4, 3, 2, 64, 4, true},
                                              {4, 3, 2, 128, 6},
                                              {6, 3, 1, 160, 9},
                                              {6, 3, 2, 256, 15}}};
constexpr std::array<Stage, 7> kStagesV2M = {{{1, 3, 1, 24, 3, true},
                                              {4, 3, 2, 48, 5, true},
                                              {4, 3, 2, 80, 5, true},
                                              {4, 3, 2, 160, 7},
                                              {6, 3, 1, 176, 14},
                                              {6, 3, 2, 304, 18},
                                              {6, 3, 1, 512, 5}}};
constexpr std::array<Stage, 7> kStagesV2L = {{{1, 3, 1, 32, 4, true},
                                              {4, 3, 2, 64, 7, true},
                                              {4, 3, 2, 96, 7, true},
                                              {4, 3, 2, 192, 10},
                                              {6, 3, 1, 224, 19},
                                              {6, 3, 2, 384, 25},
                                              {6, 3, 1, 640, 7}}};

struct Variant {
  const char *name, *description;
  std::int64_t image;
  const char* dropout;
  double width = 1.0, depth = 1.0;  // factors of channels and blocks
  NormOptions norm = {};
  std::span<const Stage> stages = kStages;
  std::int64_t first_channels = 32;
  std::int64_t last_channels = 0;  // 0: four times those of the last stage
};

constexpr NormOptions kLargeNorm{.epsilon = 1e-3, .momentum = 0.01}, kV2Norm{.epsilon = 1e-3};
constexpr std::array<Variant, 11> kVariants = {{
    {"efficientnet_b0", "inverted residuals, squeeze and excitation", 224, "0.2"},
    {"efficientnet_b1", "deeper; larger images", 240, "0.2", 1.0, 1.1},
    {"efficientnet_b2", "wider and deeper; larger images", 288, "0.3", 1.1, 1.2},
    {"efficientnet_b3", "wider and deeper; larger images", 300, "0.3", 1.2, 1.4},
    {"efficientnet_b4", "wider and deeper; larger images", 380, "0.4", 1.4, 1.8},
    {"efficientnet_b5", "wider and deeper; larger images", 456, "0.4", 1.6, 2.2, kLargeNorm},
    {"efficientnet_b6", "wider and deeper; larger images", 528, "0.5", 1.8, 2.6, kLargeNorm},
    {"efficientnet_b7", "wider and deeper; larger images", 600, "0.5", 2.0, 3.1, kLargeNorm},
    {"efficientnet_v2_s", "3x3 convolutions in the first stages", 384, "0.2", 1.0, 1.0, kV2Norm,
     kStagesV2S, 24, 1280},
    {"efficientnet_v2_m", "wider and deeper; larger images", 480, "0.3", 1.0, 1.0, kV2Norm,
     kStagesV2M, 24, 1280},
    {"efficientnet_v2_l", "wider and deeper", 480, "0.4", 1.0, 1.0, kV2Norm, kStagesV2L, 32, 1280},
}};
constexpr auto kSilu = ActivationKind::silu;

// Widen, filter each channel, weigh the channels, narrow without activation.
ValueId main_path(NetworkBuilder& builder, ValueId value, const Stage& stage, std::int64_t channels,
                  std::int64_t stride, const NormOptions& norm, const std::string& path) {
  const std::int64_t before = builder.shape(value)[1];
  const std::int64_t inner = multiple_of_8(static_cast<double>(before * stage.expansion));
  int child = 0;
  const auto next = [&] { return fmt::format("{}.block.{}", path, child++); };
  if (stage.fused) {
    const bool narrows = inner != before;
    value = conv_norm(builder, value,
                      {.channels = narrows ? inner : channels,
                       .kernel = stage.kernel,
                       .stride = stride,
                       .activation = kSilu,
                       .norm = norm},
                      next());
    if (!narrows) return value;
  } else {
    if (inner != before) {
      value =
          conv_norm(builder, value, {.channels = inner, .activation = kSilu, .norm = norm}, next());
    }
    value = conv_norm(builder, value,
                      {.channels = inner,
                       .kernel = stage.kernel,
                       .stride = stride,
                       .groups = inner,
                       .activation = kSilu,
                       .norm = norm},
                      next());
    value =
        squeeze_excitation(builder, value, {.channels = before / 4, .activation = kSilu}, next());
  }
  return conv_norm(builder, value, {.channels = channels, .norm = norm}, next());
}

ValueId block(NetworkBuilder& builder, ValueId value, const Stage& stage, std::int64_t channels,
              std::int64_t stride, const NormOptions& norm, double stochastic_depth,
              const std::string& path) {
  ValueId main = main_path(builder, value, stage, channels, stride, norm, path);
  if (stride != 1 || builder.shape(value)[1] != channels) return main;
  main = builder.stochastic_depth(main, stochastic_depth, path + ".stochastic_depth");
  return builder.add(main, value, path + ".add");
}

std::int64_t blocks_of(const Variant& variant, const Stage& stage) {
  return static_cast<std::int64_t>(std::ceil(static_cast<double>(stage.blocks) * variant.depth));
}
std::int64_t scaled(const Variant& variant, std::int64_t channels) {
  return multiple_of_8(static_cast<double>(channels) * variant.width);
}

ValueId build(NetworkBuilder& builder, ValueId image, const ModelConfig& config,
              const Variant& variant) {
  const double stochastic_depth = config.probability("stochastic_depth");
  std::int64_t blocks = 0, number = 0;
  for (const Stage& stage : variant.stages) blocks += blocks_of(variant, stage);
  int child = 0;
  const auto next = [&] { return fmt::format("features.{}", child++); };
  ValueId value = conv_norm(builder, image,
                            {.channels = scaled(variant, variant.first_channels),
                             .kernel = 3,
                             .stride = 2,
                             .activation = kSilu,
                             .norm = variant.norm},
                            next());
  for (const Stage& stage : variant.stages) {
    const std::string path = next();
    for (std::int64_t i = 0; i < blocks_of(variant, stage); ++i) {
      const double share = static_cast<double>(number++) / static_cast<double>(blocks);
      value =
          block(builder, value, stage, scaled(variant, stage.channels), i == 0 ? stage.stride : 1,
                variant.norm, stochastic_depth * share, fmt::format("{}.{}", path, i));
    }
  }
  const std::int64_t last =
      variant.last_channels != 0 ? variant.last_channels : 4 * builder.shape(value)[1];
  value = conv_norm(builder, value, {.channels = last, .activation = kSilu, .norm = variant.norm},
                    next());
  value =
      builder.dropout(channel_means(builder, value), config.probability("dropout"), "classifier.0");
  return builder.linear(value, config.classes, "classifier.1",
                        {.weights = LayerInit::Weights::uniform,
                         .amount = 1.0 / std::sqrt(static_cast<double>(config.classes)),
                         .zero_bias = true});
}

}  // namespace

std::vector<ModelInfo> efficientnet_models() {
  std::vector<ModelInfo> models = family_of("efficientnet", kVariants, build);
  for (std::size_t i = 0; i < models.size(); ++i) {
    const Variant& variant = kVariants[i];
    models[i].image.height = models[i].image.width = variant.image;
    models[i].options = {dropout_option(variant.dropout), stochastic_depth_option("0.2")};
  }
  return models;
}

}  // namespace ridgeline
