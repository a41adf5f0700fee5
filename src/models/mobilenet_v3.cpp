// MobileNetV3 (Howard et al. 2019) as torchvision builds it: https://arxiv.org/abs/1905.02244

#include <fmt/core.h>

#include <array>
#include <span>

#include "models/blocks.h"

namespace ridgeline {
namespace {

constexpr auto kRelu = ActivationKind::relu, kHardSwish = ActivationKind::hard_swish;

struct Block {
  std::int64_t kernel, inner, channels;
  bool weighed;  // with squeeze and excitation
  ActivationKind activation;
  std::int64_t stride;
};
constexpr std::array<Block, 15> kLarge = {{{3, 16, 16, false, kRelu, 1},
                                           {3, 64, 24, false, kRelu, 2},
                                           {3, 72, 24, false, kRelu, 1},
                                           {5, 72, 40, true, kRelu, 2},
                                           {5, 120, 40, true, kRelu, 1},
                                           {5, 120, 40, true, kRelu, 1},
                                           {3, 240, 80, false, kHardSwish, 2},
                                           {3, 200, 80, false, kHardSwish, 1},
                                           {3, 184, 80, false, kHardSwish, 1},
                                           {3, 184, 80, false, kHardSwish, 1},
                                           {3, 480, 112, true, kHardSwish, 1},
                                           {3, 672, 112, true, kHardSwish, 1},
                                           {5, 672, 160, true, kHardSwish, 2},
                                           {5, 960, 160, true, kHardSwish, 1},
                                           {5, 960, 160, true, kHardSwish, 1}}};
constexpr std::array<Block, 11> kSmall = {{{3, 16, 16, true, kRelu, 2},
                                           {3, 72, 24, false, kRelu, 2},
                                           {3, 88, 24, false, kRelu, 1},
                                           {5, 96, 40, true, kHardSwish, 2},
                                           {5, 240, 40, true, kHardSwish, 1},
                                           {5, 240, 40, true, kHardSwish, 1},
                                           {5, 120, 48, true, kHardSwish, 1},
                                           {5, 144, 48, true, kHardSwish, 1},
                                           {5, 288, 96, true, kHardSwish, 2},
                                           {5, 576, 96, true, kHardSwish, 1},
                                           {5, 576, 96, true, kHardSwish, 1}}};

struct Variant {
  const char *name, *description;
  std::span<const Block> blocks;
  std::int64_t hidden;  // units of the dense hidden layer
};
constexpr std::array<Variant, 2> kVariants = {{
    {"mobilenet_v3_small", "11 blocks, squeeze and excitation", kSmall, 1024},
    {"mobilenet_v3_large", "15 blocks", kLarge, 1280},
}};
constexpr NormOptions kNorm{.epsilon = 1e-3, .momentum = 0.01};

// Widen by 1x1, filter each channel, weigh the channels, narrow by 1x1 without activation.
ValueId inverted_residual(NetworkBuilder& builder, ValueId value, const Block& block,
                          const std::string& path) {
  const std::int64_t before = builder.shape(value)[1];
  ValueId main = value;
  int child = 0;
  const auto next = [&] { return fmt::format("{}.block.{}", path, child++); };
  if (block.inner != before) {
    main =
        conv_norm(builder, main,
                  {.channels = block.inner, .activation = block.activation, .norm = kNorm}, next());
  }
  main = conv_norm(builder, main,
                   {.channels = block.inner,
                    .kernel = block.kernel,
                    .stride = block.stride,
                    .groups = block.inner,
                    .activation = block.activation,
                    .norm = kNorm},
                   next());
  if (block.weighed) {
    const std::int64_t channels = multiple_of_8(static_cast<double>(block.inner / 4));
    main = squeeze_excitation(builder, main,
                              {.channels = channels, .gate = ActivationKind::hard_sigmoid}, next());
  }
  main = conv_norm(builder, main, {.channels = block.channels, .norm = kNorm}, next());
  const bool residual = block.stride == 1 && before == block.channels;
  return residual ? builder.add(main, value, path + ".add") : main;
}

ValueId build(NetworkBuilder& builder, ValueId image, const ModelConfig& config,
              const Variant& variant) {
  int child = 0;
  const auto next = [&] { return fmt::format("features.{}", child++); };
  ValueId value = conv_norm(
      builder, image,
      {.channels = 16, .kernel = 3, .stride = 2, .activation = kHardSwish, .norm = kNorm}, next());
  for (const Block& block : variant.blocks)
    value = inverted_residual(builder, value, block, next());
  const std::int64_t last = 6 * builder.shape(value)[1];
  value = conv_norm(builder, value, {.channels = last, .activation = kHardSwish, .norm = kNorm},
                    next());
  value =
      builder.linear(channel_means(builder, value), variant.hidden, "classifier.0", kSmallNormal);
  value = builder.activation(value, {.kind = kHardSwish}, "classifier.1");
  value = builder.dropout(value, config.probability("dropout"), "classifier.2");
  return builder.linear(value, config.classes, "classifier.3", kSmallNormal);
}

}  // namespace

std::vector<ModelInfo> mobilenet_v3_models() {
  return family_of("mobilenet", kVariants, build, {dropout_option("0.2")});
}

}  // namespace ridgeline
