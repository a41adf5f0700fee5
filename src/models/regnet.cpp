// RegNetX and RegNetY (Radosavovic et al. 2020) as torchvision builds them:
// https://arxiv.org/abs/2003.13678

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "models/blocks.h"

namespace ridgeline {
namespace {

struct Variant {
  const char *name, *description;
  std::array<std::int64_t, 4> blocks, channels;
  std::int64_t group_channels;
  bool weighed = false;  // RegNetY: with squeeze and excitation
};

constexpr std::array<Variant, 15> kVariants = {{
    {"regnet_x_400mf", "grouped bottlenecks, 0.4 GMACs", {1, 2, 7, 12}, {32, 64, 160, 400}, 16},
    {"regnet_x_800mf", "0.8 GMACs", {1, 3, 7, 5}, {64, 128, 288, 672}, 16},
    {"regnet_x_1_6gf", "1.6 GMACs", {2, 4, 10, 2}, {72, 168, 408, 912}, 24},
    {"regnet_x_3_2gf", "3.2 GMACs", {2, 6, 15, 2}, {96, 192, 432, 1008}, 48},
    {"regnet_x_8gf", "8 GMACs", {2, 5, 15, 1}, {80, 240, 720, 1920}, 120},
    {"regnet_x_16gf", "16 GMACs", {2, 6, 13, 1}, {256, 512, 896, 2048}, 128},
    {"regnet_x_32gf", "32 GMACs", {2, 7, 13, 1}, {336, 672, 1344, 2520}, 168},
    {"regnet_y_400mf",
     "0.4 GMACs, squeeze and excitation",
     {1, 3, 6, 6},
     {48, 104, 208, 440},
     8,
     true},
    {"regnet_y_800mf", "0.8 GMACs", {1, 3, 8, 2}, {64, 144, 320, 784}, 16, true},
    {"regnet_y_1_6gf", "1.6 GMACs", {2, 6, 17, 2}, {48, 120, 336, 888}, 24, true},
    {"regnet_y_3_2gf", "3.2 GMACs", {2, 5, 13, 1}, {72, 216, 576, 1512}, 24, true},
    {"regnet_y_8gf", "8 GMACs", {2, 4, 10, 1}, {224, 448, 896, 2016}, 56, true},
    {"regnet_y_16gf", "16 GMACs", {2, 4, 11, 1}, {224, 448, 1232, 3024}, 112, true},
    {"regnet_y_32gf", "32 GMACs", {2, 5, 12, 1}, {232, 696, 1392, 3712}, 232, true},
    {"regnet_y_128gf", "128 GMACs", {2, 7, 17, 1}, {528, 1056, 2904, 7392}, 264, true},
}};
constexpr auto kRelu = ActivationKind::relu;

ValueId main_path(NetworkBuilder& builder, ValueId value, const Variant& variant,
                  std::int64_t channels, std::int64_t stride, const std::string& path) {
  const std::int64_t before = builder.shape(value)[1];
  value = conv_norm(builder, value, {.channels = channels, .activation = kRelu}, path + ".a");
  value = conv_norm(builder, value,
                    {.channels = channels,
                     .kernel = 3,
                     .stride = stride,
                     .groups = channels / std::min(variant.group_channels, channels),
                     .activation = kRelu},
                    path + ".b");
  if (variant.weighed) {
    // Their biases start as PyTorch's do, unlike those of other families.
    value = squeeze_excitation(
        builder, value,
        {.channels = before / 4, .init = {.weights = LayerInit::Weights::he_normal_fan_out}},
        path + ".se");
  }
  return conv_norm(builder, value, {.channels = channels}, path + ".c");
}

ValueId block(NetworkBuilder& builder, ValueId value, const Variant& variant, std::int64_t channels,
              std::int64_t stride, const std::string& path) {
  ValueId past = value;
  if (stride != 1 || builder.shape(value)[1] != channels) {
    past = conv_norm(builder, value, {.channels = channels, .stride = stride}, path + ".proj");
  }
  const ValueId main = main_path(builder, value, variant, channels, stride, path + ".f");
  return builder.relu(builder.add(past, main, path + ".add"), path + ".activation");
}

ValueId build(NetworkBuilder& builder, ValueId image, const ModelConfig& config,
              const Variant& variant) {
  ValueId value = conv_norm(
      builder, image, {.channels = 32, .kernel = 3, .stride = 2, .activation = kRelu}, "stem");
  for (std::size_t stage = 0; stage < variant.blocks.size(); ++stage) {
    for (std::int64_t i = 0; i < variant.blocks[stage]; ++i) {
      value = block(builder, value, variant, variant.channels[stage], i == 0 ? 2 : 1,
                    fmt::format("trunk_output.block{0}.block{0}-{1}", stage + 1, i));
    }
  }
  return builder.linear(channel_means(builder, value), config.classes, "fc", kSmallNormal);
}

}  // namespace

std::vector<ModelInfo> regnet_models() { return family_of("regnet", kVariants, build); }

}  // namespace ridgeline
