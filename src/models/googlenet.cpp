// GoogLeNet (Szegedy et al. 2014) as torchvision builds it, with batch norms:
// https://arxiv.org/abs/1409.4842. What it calls a 5x5 convolution is one of 3x3, as there.
// torchvision's option transform_input, which undoes ImageNet's normalisation for weights ported
// from TensorFlow, is no part of the network here: normalise with mean and deviation 0.5 instead.

#include <fmt/core.h>

#include <array>

#include "models/blocks.h"

namespace ridgeline {
namespace {

constexpr LayerInit kInit{.weights = LayerInit::Weights::truncated_normal, .amount = 0.01};
constexpr double kAuxiliaryWeight = 0.3;

struct Inception {
  const char* name;
  std::int64_t by_1x1, before_3x3, by_3x3, before_5x5, by_5x5, pooled;
  std::int64_t pool_after = 0;  // the window of a max pooling with stride 2
};
constexpr std::array<Inception, 9> kInceptions = {{{"inception3a", 64, 96, 128, 16, 32, 32},
                                                   {"inception3b", 128, 128, 192, 32, 96, 64, 3},
                                                   {"inception4a", 192, 96, 208, 16, 48, 64},
                                                   {"inception4b", 160, 112, 224, 24, 64, 64},
                                                   {"inception4c", 128, 128, 256, 24, 64, 64},
                                                   {"inception4d", 112, 144, 288, 32, 64, 64},
                                                   {"inception4e", 256, 160, 320, 32, 128, 128, 2},
                                                   {"inception5a", 256, 160, 320, 32, 128, 128},
                                                   {"inception5b", 384, 192, 384, 48, 128, 128}}};

ValueId conv(NetworkBuilder& builder, ValueId value, std::int64_t channels, std::int64_t kernel,
             const std::string& path, std::int64_t stride = 1) {
  return conv_norm(builder, value,
                   {.channels = channels,
                    .kernel = kernel,
                    .stride = stride,
                    .activation = ActivationKind::relu,
                    .norm = {.epsilon = 1e-3},
                    .init = kInit},
                   {path + ".conv", path + ".bn", path + ".relu"});
}

ValueId halved(NetworkBuilder& builder, ValueId value, std::int64_t kernel,
               const std::string& path) {
  return builder.max_pool(value, {.kernel = kernel, .stride = 2, .ceil_mode = true}, path);
}

ValueId inception(NetworkBuilder& builder, ValueId value, const Inception& block) {
  const std::string path = block.name;
  const ValueId by_1x1 = conv(builder, value, block.by_1x1, 1, path + ".branch1");
  ValueId by_3x3 = conv(builder, value, block.before_3x3, 1, path + ".branch2.0");
  by_3x3 = conv(builder, by_3x3, block.by_3x3, 3, path + ".branch2.1");
  ValueId by_5x5 = conv(builder, value, block.before_5x5, 1, path + ".branch3.0");
  by_5x5 = conv(builder, by_5x5, block.by_5x5, 3, path + ".branch3.1");
  ValueId pooled = builder.max_pool(
      value, {.kernel = 3, .stride = 1, .padding = 1, .ceil_mode = true}, path + ".branch4.0");
  pooled = conv(builder, pooled, block.pooled, 1, path + ".branch4.1");
  return builder.concat({by_1x1, by_3x3, by_5x5, pooled}, path + ".cat");
}

// A second classifier in the middle of the network, whose loss helps the first layers.
void auxiliary(NetworkBuilder& builder, ValueId value, const ModelConfig& config,
               const std::string& path) {
  value = builder.adaptive_average_pool(value, 4, 4, path + ".avgpool");
  value = builder.flatten(conv(builder, value, 128, 1, path + ".conv"), path + ".flatten");
  value = builder.relu(builder.linear(value, 1024, path + ".fc1", kInit), path + ".relu");
  value = builder.dropout(value, config.probability("dropout_aux"), path + ".dropout");
  builder.auxiliary(builder.linear(value, config.classes, path + ".fc2", kInit), kAuxiliaryWeight);
}

ValueId build(NetworkBuilder& builder, ValueId image, const ModelConfig& config) {
  ValueId value = conv(builder, image, 64, 7, "conv1", 2);
  value = halved(builder, value, 3, "maxpool1");
  value = conv(builder, value, 64, 1, "conv2");
  value = conv(builder, value, 192, 3, "conv3");
  value = halved(builder, value, 3, "maxpool2");
  int pools = 2;
  for (const Inception& block : kInceptions) {
    value = inception(builder, value, block);
    if (block.name == std::string_view("inception4a")) auxiliary(builder, value, config, "aux1");
    if (block.name == std::string_view("inception4d")) auxiliary(builder, value, config, "aux2");
    if (block.pool_after == 0) continue;
    value = halved(builder, value, block.pool_after, fmt::format("maxpool{}", ++pools));
  }
  value = builder.dropout(channel_means(builder, value), config.probability("dropout"), "dropout");
  return builder.linear(value, config.classes, "fc", kInit);
}

}  // namespace

std::vector<ModelInfo> googlenet_models() {
  return {{.name = "googlenet",
           .family = "googlenet",
           .description = "convolutions side by side, auxiliary heads",
           .image = kImageNetImage,
           .options = {dropout_option("0.2"),
                       {"dropout_aux", "0.7", "the same in the auxiliary heads"}},
           .build = build}};
}

}  // namespace ridgeline
