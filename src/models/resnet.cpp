// ResNet (He et al. 2015) as torchvision builds it, with the stride on the 3x3 convolution
// ("v1.5"): https://arxiv.org/abs/1512.03385

#include <fmt/core.h>

#include <array>

#include "models/model.h"

namespace ridgeline {
namespace {

constexpr LayerInit kConvInit{.weights = LayerInit::Weights::he_normal_fan_out};

ValueId conv_bn(NetworkBuilder& builder, ValueId value, std::int64_t channels, std::int64_t kernel,
                std::int64_t stride, const std::string& conv, const std::string& norm) {
  value = builder.conv2d(value, channels,
                         {.kernel_h = kernel,
                          .kernel_w = kernel,
                          .stride = stride,
                          .padding = kernel / 2,
                          .bias = false,
                          .init = kConvInit},
                         conv);
  return builder.batch_norm(value, norm);
}

// The way past a block: the value itself, or a 1x1 convolution where the shape changes.
ValueId shortcut(NetworkBuilder& builder, ValueId value, std::int64_t channels, std::int64_t stride,
                 const std::string& path) {
  if (stride == 1 && builder.shape(value)[1] == channels) return value;
  return conv_bn(builder, value, channels, 1, stride, path + ".downsample.0",
                 path + ".downsample.1");
}

ValueId basic_block(NetworkBuilder& builder, ValueId value, std::int64_t width, std::int64_t stride,
                    const std::string& path) {
  ValueId main = conv_bn(builder, value, width, 3, stride, path + ".conv1", path + ".bn1");
  main = builder.relu(main, path + ".relu");
  main = conv_bn(builder, main, width, 3, 1, path + ".conv2", path + ".bn2");
  const ValueId past = shortcut(builder, value, width, stride, path);
  return builder.relu(builder.add(main, past, path + ".add"), path + ".relu");
}

ValueId bottleneck(NetworkBuilder& builder, ValueId value, std::int64_t width, std::int64_t stride,
                   const std::string& path) {
  ValueId main = conv_bn(builder, value, width, 1, 1, path + ".conv1", path + ".bn1");
  main = builder.relu(main, path + ".relu");
  main = conv_bn(builder, main, width, 3, stride, path + ".conv2", path + ".bn2");
  main = builder.relu(main, path + ".relu");
  main = conv_bn(builder, main, 4 * width, 1, 1, path + ".conv3", path + ".bn3");
  const ValueId past = shortcut(builder, value, 4 * width, stride, path);
  return builder.relu(builder.add(main, past, path + ".add"), path + ".relu");
}

ValueId build(NetworkBuilder& builder, ValueId image, const ModelConfig& config,
              std::array<std::int64_t, 4> blocks, decltype(basic_block)* block) {
  ValueId value = conv_bn(builder, image, 64, 7, 2, "conv1", "bn1");
  value = builder.relu(value, "relu");
  value = builder.max_pool(value, {.kernel = 3, .stride = 2, .padding = 1}, "maxpool");
  for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
    for (std::int64_t i = 0; i < blocks[stage]; ++i) {
      value = block(builder, value, std::int64_t{64} << stage, stage > 0 && i == 0 ? 2 : 1,
                    fmt::format("layer{}.{}", stage + 1, i));
    }
  }
  value = builder.global_average_pool(value, "avgpool");
  return builder.linear(builder.flatten(value, "flatten"), config.classes, "fc");
}

}  // namespace

ModelInfo resnet18_model() {
  return {.name = "resnet18",
          .description = "residual network, 8 blocks of two 3x3 convolutions",
          .image = kImageNetImage,
          .build = [](NetworkBuilder& builder, ValueId image, const ModelConfig& config) {
            return build(builder, image, config, {2, 2, 2, 2}, basic_block);
          }};
}

ModelInfo resnet34_model() {
  return {.name = "resnet34",
          .description = "residual network, 16 blocks of two 3x3 convolutions",
          .image = kImageNetImage,
          .build = [](NetworkBuilder& builder, ValueId image, const ModelConfig& config) {
            return build(builder, image, config, {3, 4, 6, 3}, basic_block);
          }};
}

ModelInfo resnet50_model() {
  return {.name = "resnet50",
          .description = "residual network, 16 bottleneck blocks (stride on the 3x3, v1.5)",
          .image = kImageNetImage,
          .build = [](NetworkBuilder& builder, ValueId image, const ModelConfig& config) {
            return build(builder, image, config, {3, 4, 6, 3}, bottleneck);
          }};
}

ModelInfo resnet101_model() {
  return {.name = "resnet101",
          .description = "residual network, 33 bottleneck blocks",
          .image = kImageNetImage,
          .build = [](NetworkBuilder& builder, ValueId image, const ModelConfig& config) {
            return build(builder, image, config, {3, 4, 23, 3}, bottleneck);
          }};
}

ModelInfo resnet152_model() {
  return {.name = "resnet152",
          .description = "residual network, 50 bottleneck blocks",
          .image = kImageNetImage,
          .build = [](NetworkBuilder& builder, ValueId image, const ModelConfig& config) {
            return build(builder, image, config, {3, 8, 36, 3}, bottleneck);
          }};
}

}  // namespace ridgeline
