// ConvNeXt (Liu et al. 2022) as torchvision builds it: https://arxiv.org/abs/2201.03545
// torchvision permutes to (N, H, W, C) and applies linear layers there; 1x1 convolutions are the
// same. Only their weights' shape in files is that of a linear layer.

#include <fmt/core.h>

#include <array>
#include <numeric>

#include "models/blocks.h"

namespace ridgeline {
namespace {

struct Variant {
  const char *name, *description;
  std::array<std::int64_t, 4> blocks, channels;
  const char* stochastic_depth;
};

constexpr std::array<Variant, 4> kVariants = {{
    {"convnext_tiny",
     "7x7 depthwise, layer norm, 18 blocks",
     {3, 3, 9, 3},
     {96, 192, 384, 768},
     "0.1"},
    {"convnext_small", "36 blocks", {3, 3, 27, 3}, {96, 192, 384, 768}, "0.4"},
    {"convnext_base", "36 wider blocks", {3, 3, 27, 3}, {128, 256, 512, 1024}, "0.5"},
    {"convnext_large", "36 still wider blocks", {3, 3, 27, 3}, {192, 384, 768, 1536}, "0.5"},
}};

constexpr double kEpsilon = 1e-6, kLayerScale = 1e-6;
constexpr LayerInit kInit{
    .weights = LayerInit::Weights::truncated_normal, .amount = 0.02, .zero_bias = true};

ValueId linear_of_pixels(NetworkBuilder& builder, ValueId value, std::int64_t channels,
                         const std::string& path) {
  return builder.conv2d(value, channels,
                        {.init = kInit, .file_shape = {channels, builder.shape(value)[1]}}, path);
}

ValueId block(NetworkBuilder& builder, ValueId value, double stochastic_depth,
              const std::string& path) {
  const std::int64_t channels = builder.shape(value)[1];
  ValueId main = builder.conv2d(
      value, channels,
      {.kernel_h = 7, .kernel_w = 7, .padding = 3, .groups = channels, .init = kInit},
      path + ".block.0");
  main = builder.layer_norm(main, path + ".block.2", kEpsilon);
  main = linear_of_pixels(builder, main, 4 * channels, path + ".block.3");
  main = builder.activation(main, {.kind = ActivationKind::gelu}, path + ".block.4");
  main = linear_of_pixels(builder, main, channels, path + ".block.5");
  main = builder.layer_scale(main, kLayerScale, path + ".layer_scale");
  main = builder.stochastic_depth(main, stochastic_depth, path + ".stochastic_depth");
  return builder.add(main, value, path + ".add");
}

// A convolution whose kernels do not overlap.
ValueId patches(NetworkBuilder& builder, ValueId value, std::int64_t channels, std::int64_t size,
                const std::string& path) {
  return builder.conv2d(value, channels,
                        {.kernel_h = size, .kernel_w = size, .stride = size, .init = kInit}, path);
}

ValueId build(NetworkBuilder& builder, ValueId image, const ModelConfig& config,
              const Variant& variant) {
  const double stochastic_depth = config.probability("stochastic_depth");
  const std::int64_t last =
      std::accumulate(variant.blocks.begin(), variant.blocks.end(), std::int64_t{-1});
  std::int64_t number = 0;
  ValueId value = patches(builder, image, variant.channels[0], 4, "features.0.0");
  value = builder.layer_norm(value, "features.0.1", kEpsilon);
  for (std::size_t stage = 0; stage < variant.blocks.size(); ++stage) {
    if (stage > 0) {
      const std::string path = fmt::format("features.{}", 2 * stage);
      value = builder.layer_norm(value, path + ".0", kEpsilon);
      value = patches(builder, value, variant.channels[stage], 2, path + ".1");
    }
    for (std::int64_t i = 0; i < variant.blocks[stage]; ++i) {
      const double share = static_cast<double>(number++) / static_cast<double>(last);
      value = block(builder, value, stochastic_depth * share,
                    fmt::format("features.{}.{}", 2 * stage + 1, i));
    }
  }
  value = builder.global_average_pool(value, "avgpool");
  value = builder.flatten(builder.layer_norm(value, "classifier.0", kEpsilon), "classifier.1");
  return builder.linear(value, config.classes, "classifier.2", kInit);
}

}  // namespace

std::vector<ModelInfo> convnext_models() {
  std::vector<ModelInfo> models = family_of("convnext", kVariants, build);
  for (std::size_t i = 0; i < models.size(); ++i) {
    models[i].options = {stochastic_depth_option(kVariants[i].stochastic_depth)};
  }
  return models;
}

}  // namespace ridgeline
