// ResNet (He et al. 2015) as torchvision builds it, with the stride on the 3x3 convolution
// ("v1.5"): https://arxiv.org/abs/1512.03385. ResNeXt (Xie et al. 2016) groups the 3x3
// convolutions, Wide ResNet (Zagoruyko et al. 2016) widens them: https://arxiv.org/abs/1611.05431,
// https://arxiv.org/abs/1605.07146

#include <fmt/core.h>

#include <array>

#include "models/blocks.h"

namespace ridgeline {
namespace {

struct Variant {
  const char *name, *description;
  std::array<std::int64_t, 4> blocks;
  bool bottlenecks = true;
  std::int64_t groups = 1, group_width = 64;  // of a bottleneck's 3x3 convolution
};

constexpr std::array<Variant, 10> kVariants = {{
    {"resnet18", "8 residual blocks of two 3x3 convolutions", {2, 2, 2, 2}, false},
    {"resnet34", "16 blocks of two 3x3 convolutions", {3, 4, 6, 3}, false},
    {"resnet50", "16 bottleneck blocks, stride on the 3x3", {3, 4, 6, 3}},
    {"resnet101", "33 bottleneck blocks", {3, 4, 23, 3}},
    {"resnet152", "50 bottleneck blocks", {3, 8, 36, 3}},
    {"resnext50_32x4d", "resnet50 with 32 groups of 4 channels", {3, 4, 6, 3}, true, 32, 4},
    {"resnext101_32x8d", "resnet101 with 32 groups of 8 channels", {3, 4, 23, 3}, true, 32, 8},
    {"resnext101_64x4d", "resnet101 with 64 groups of 4 channels", {3, 4, 23, 3}, true, 64, 4},
    {"wide_resnet50_2", "resnet50, 3x3 convolutions twice as wide", {3, 4, 6, 3}, true, 1, 128},
    {"wide_resnet101_2", "resnet101, 3x3 convolutions twice as wide", {3, 4, 23, 3}, true, 1, 128},
}};

// A block's convolution `number`: conv1 and bn1, say.
ValueId conv(NetworkBuilder& builder, ValueId value, const ConvNorm& layer, const std::string& path,
             int number) {
  return conv_norm(builder, value, layer,
                   {fmt::format("{}.conv{}", path, number), fmt::format("{}.bn{}", path, number),
                    path + ".relu"});
}

ValueId main_path(NetworkBuilder& builder, ValueId value, const Variant& variant,
                  std::int64_t width, std::int64_t stride, const std::string& path) {
  constexpr auto kRelu = ActivationKind::relu;
  if (!variant.bottlenecks) {
    value = conv(builder, value,
                 {.channels = width, .kernel = 3, .stride = stride, .activation = kRelu}, path, 1);
    return conv(builder, value, {.channels = width, .kernel = 3}, path, 2);
  }
  const std::int64_t inner = width * variant.group_width / 64 * variant.groups;
  value = conv(builder, value, {.channels = inner, .activation = kRelu}, path, 1);
  value = conv(builder, value,
               {.channels = inner,
                .kernel = 3,
                .stride = stride,
                .groups = variant.groups,
                .activation = kRelu},
               path, 2);
  return conv(builder, value, {.channels = 4 * width}, path, 3);
}

// The way past a block is the value itself, or a 1x1 convolution where the shape changes.
ValueId residual(NetworkBuilder& builder, ValueId value, const Variant& variant, std::int64_t width,
                 std::int64_t stride, const std::string& path) {
  const ValueId main = main_path(builder, value, variant, width, stride, path);
  const std::int64_t channels = builder.shape(main)[1];
  if (stride != 1 || builder.shape(value)[1] != channels) {
    value =
        conv_norm(builder, value, {.channels = channels, .stride = stride}, path + ".downsample");
  }
  return builder.relu(builder.add(main, value, path + ".add"), path + ".relu");
}

ValueId build(NetworkBuilder& builder, ValueId image, const ModelConfig& config,
              const Variant& variant) {
  ValueId value =
      conv_norm(builder, image,
                {.channels = 64, .kernel = 7, .stride = 2, .activation = ActivationKind::relu},
                {"conv1", "bn1", "relu"});
  value = builder.max_pool(value, {.kernel = 3, .stride = 2, .padding = 1}, "maxpool");
  for (std::size_t stage = 0; stage < variant.blocks.size(); ++stage) {
    for (std::int64_t i = 0; i < variant.blocks[stage]; ++i) {
      value = residual(builder, value, variant, std::int64_t{64} << stage,
                       stage > 0 && i == 0 ? 2 : 1, fmt::format("layer{}.{}", stage + 1, i));
    }
  }
  return builder.linear(channel_means(builder, value), config.classes, "fc");
}

}  // namespace

std::vector<ModelInfo> resnet_models() { return family_of("resnet", kVariants, build); }

}  // namespace ridgeline
