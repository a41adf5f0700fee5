// ShuffleNetV2 (Ma et al. 2018) as torchvision builds it: https://arxiv.org/abs/1807.11164

#include <fmt/core.h>

#include <array>

#include "models/blocks.h"

namespace ridgeline {
namespace {

struct Variant {
  const char *name, *description;
  std::array<std::int64_t, 4> channels;  // of the three stages and the last convolution
};
constexpr std::array<Variant, 4> kVariants = {{
    {"shufflenet_v2_x0_5", "half the channels pass, all are shuffled", {48, 96, 192, 1024}},
    {"shufflenet_v2_x1_0", "about twice as wide", {116, 232, 464, 1024}},
    {"shufflenet_v2_x1_5", "about three times as wide", {176, 352, 704, 1024}},
    {"shufflenet_v2_x2_0", "about four times as wide", {244, 488, 976, 2048}},
}};
constexpr std::array<std::int64_t, 3> kBlocks = {4, 8, 4};
constexpr auto kRelu = ActivationKind::relu;

// A layer of a branch: `child` is the number of its convolution.
ValueId conv(NetworkBuilder& builder, ValueId value, ConvNorm layer, const std::string& branch,
             int child) {
  layer.init = {};
  const auto path = [&](int i) { return fmt::format("{}.{}", branch, child + i); };
  return conv_norm(builder, value, layer, {path(0), path(1), path(2)});
}

ValueId depthwise(NetworkBuilder& builder, ValueId value, std::int64_t stride,
                  const std::string& branch, int child) {
  const std::int64_t channels = builder.shape(value)[1];
  return conv(builder, value,
              {.channels = channels, .kernel = 3, .stride = stride, .groups = channels}, branch,
              child);
}

// Half of the channels pass as they are; where the image gets smaller, a second branch is computed.
ValueId block(NetworkBuilder& builder, ValueId value, std::int64_t channels, std::int64_t stride,
              const std::string& path) {
  const std::int64_t half = channels / 2;
  ValueId past = value, main = value;
  if (stride == 1) {
    const std::vector<ValueId> parts = builder.split(value, {half, half}, path + ".chunk");
    past = parts[0];
    main = parts[1];
  } else {
    past = depthwise(builder, past, stride, path + ".branch1", 0);
    past = conv(builder, past, {.channels = half, .activation = kRelu}, path + ".branch1", 2);
  }
  main = conv(builder, main, {.channels = half, .activation = kRelu}, path + ".branch2", 0);
  main = depthwise(builder, main, stride, path + ".branch2", 3);
  main = conv(builder, main, {.channels = half, .activation = kRelu}, path + ".branch2", 5);
  return builder.shuffle(builder.concat({past, main}, path + ".cat"), 2, path + ".shuffle");
}

ValueId build(NetworkBuilder& builder, ValueId image, const ModelConfig& config,
              const Variant& variant) {
  ValueId value = conv(builder, image,
                       {.channels = 24, .kernel = 3, .stride = 2, .activation = kRelu}, "conv1", 0);
  value = builder.max_pool(value, {.kernel = 3, .stride = 2, .padding = 1}, "maxpool");
  for (std::size_t stage = 0; stage < kBlocks.size(); ++stage) {
    for (std::int64_t i = 0; i < kBlocks[stage]; ++i) {
      value = block(builder, value, variant.channels[stage], i == 0 ? 2 : 1,
                    fmt::format("stage{}.{}", stage + 2, i));
    }
  }
  value = conv(builder, value, {.channels = variant.channels[3], .activation = kRelu}, "conv5", 0);
  return builder.linear(channel_means(builder, value), config.classes, "fc");
}

}  // namespace

std::vector<ModelInfo> shufflenet_models() { return family_of("shufflenet", kVariants, build); }

}  // namespace ridgeline
