// SqueezeNet 1.0 and 1.1 (Iandola et al. 2016) as torchvision builds them:
// https://arxiv.org/abs/1602.07360

#include <fmt/core.h>

#include <array>
#include <span>

#include "models/blocks.h"

namespace ridgeline {
namespace {

constexpr LayerInit kConvInit{.weights = LayerInit::Weights::he_uniform_fan_in, .zero_bias = true};

ValueId conv_relu(NetworkBuilder& builder, ValueId value, std::int64_t channels,
                  std::int64_t kernel, const std::string& path) {
  value = builder.conv2d(
      value, channels,
      {.kernel_h = kernel, .kernel_w = kernel, .padding = kernel / 2, .init = kConvInit}, path);
  return builder.relu(value, path + "_activation");
}

// Few channels by 1x1, then many by 1x1 and by 3x3 side by side.
ValueId fire(NetworkBuilder& builder, ValueId value, std::int64_t squeeze, std::int64_t expand,
             const std::string& path) {
  value = conv_relu(builder, value, squeeze, 1, path + ".squeeze");
  const ValueId by_1x1 = conv_relu(builder, value, expand, 1, path + ".expand1x1");
  const ValueId by_3x3 = conv_relu(builder, value, expand, 3, path + ".expand3x3");
  return builder.concat({by_1x1, by_3x3}, path + ".cat");
}

// A fire module, or a pool where `squeeze` is 0.
struct Part {
  std::int64_t squeeze = 0, expand = 0;
};

constexpr Part kPool{};
constexpr std::array<Part, 11> kParts10 = {{kPool,
                                            {16, 64},
                                            {16, 64},
                                            {32, 128},
                                            kPool,
                                            {32, 128},
                                            {48, 192},
                                            {48, 192},
                                            {64, 256},
                                            kPool,
                                            {64, 256}}};
constexpr std::array<Part, 11> kParts11 = {{kPool,
                                            {16, 64},
                                            {16, 64},
                                            kPool,
                                            {32, 128},
                                            {32, 128},
                                            kPool,
                                            {48, 192},
                                            {48, 192},
                                            {64, 256},
                                            {64, 256}}};

struct Variant {
  const char *name, *description;
  std::int64_t channels, kernel;  // of the first convolution
  std::span<const Part> parts;
};
constexpr std::array<Variant, 2> kVariants = {{
    {"squeezenet1_0", "1x1 and 3x3 convolutions side by side", 96, 7, kParts10},
    {"squeezenet1_1", "pooled earlier: 2.4 times less work", 64, 3, kParts11},
}};

ValueId build(NetworkBuilder& builder, ValueId image, const ModelConfig& config,
              const Variant& variant) {
  ValueId value = builder.conv2d(
      image, variant.channels,
      {.kernel_h = variant.kernel, .kernel_w = variant.kernel, .stride = 2, .init = kConvInit},
      "features.0");
  value = builder.relu(value, "features.1");
  int child = 2;
  for (const Part& part : variant.parts) {
    const std::string path = fmt::format("features.{}", child++);
    value = part.squeeze == 0
                ? builder.max_pool(value, {.kernel = 3, .stride = 2, .ceil_mode = true}, path)
                : fire(builder, value, part.squeeze, part.expand, path);
  }
  value = builder.dropout(value, config.probability("dropout"), "classifier.0");
  value = builder.conv2d(value, config.classes, {.init = kSmallNormal}, "classifier.1");
  value = builder.relu(value, "classifier.2");
  return builder.flatten(builder.global_average_pool(value, "classifier.3"), "flatten");
}

}  // namespace

std::vector<ModelInfo> squeezenet_models() {
  return family_of("squeezenet", kVariants, build, {dropout_option("0.5")});
}

}  // namespace ridgeline
