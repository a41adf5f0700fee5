// Inception v3 (Szegedy et al. 2015) as torchvision builds it: https://arxiv.org/abs/1512.00567
// torchvision's option transform_input, which undoes ImageNet's normalisation for weights ported
// from TensorFlow, is no part of the network here: normalise with mean and deviation 0.5 instead.

#include <fmt/core.h>

#include "models/blocks.h"

namespace ridgeline {
namespace {

constexpr LayerInit kInit{.weights = LayerInit::Weights::truncated_normal, .amount = 0.1};
constexpr LayerInit kAuxiliaryInit{.weights = LayerInit::Weights::truncated_normal,
                                   .amount = 0.001};
constexpr double kAuxiliaryWeight = 0.4;

struct Conv {
  const char* name;
  std::int64_t channels, kernel_h = 1, kernel_w = 1, stride = 1;
  bool padded = true;  // so that the image keeps its size
};

// Convolutions one after the other, each with its batch norm and ReLU.
ValueId chain(NetworkBuilder& builder, ValueId value, const std::string& path,
              std::initializer_list<Conv> convs) {
  for (const Conv& conv : convs) {
    const std::string layer = path + conv.name;
    value = builder.conv2d(value, conv.channels,
                           {.kernel_h = conv.kernel_h,
                            .kernel_w = conv.kernel_w,
                            .stride = conv.stride,
                            .bias = false,
                            .init = kInit,
                            .pad_h = conv.padded ? conv.kernel_h / 2 : 0,
                            .pad_w = conv.padded ? conv.kernel_w / 2 : 0},
                           layer + ".conv");
    value = builder.batch_norm(value, layer + ".bn", {.epsilon = 1e-3});
    value = builder.relu(value, layer + ".relu");
  }
  return value;
}

ValueId smoothed(NetworkBuilder& builder, ValueId value, std::int64_t channels,
                 const std::string& path) {
  value = builder.average_pool(value, {.kernel = 3, .stride = 1, .padding = 1}, path + "avg_pool");
  return chain(builder, value, path, {{"branch_pool", channels}});
}

ValueId halved(NetworkBuilder& builder, ValueId value, const std::string& layer) {
  return builder.max_pool(value, {.kernel = 3, .stride = 2}, layer);
}

ValueId mixed_5(NetworkBuilder& builder, ValueId value, std::int64_t pooled,
                const std::string& path) {
  const ValueId by_1x1 = chain(builder, value, path, {{"branch1x1", 64}});
  const ValueId by_5x5 =
      chain(builder, value, path, {{"branch5x5_1", 48}, {"branch5x5_2", 64, 5, 5}});
  const ValueId by_3x3 =
      chain(builder, value, path,
            {{"branch3x3dbl_1", 64}, {"branch3x3dbl_2", 96, 3, 3}, {"branch3x3dbl_3", 96, 3, 3}});
  return builder.concat({by_1x1, by_5x5, by_3x3, smoothed(builder, value, pooled, path)},
                        path + "cat");
}

ValueId mixed_6a(NetworkBuilder& builder, ValueId value, const std::string& path) {
  const ValueId by_3x3 = chain(builder, value, path, {{"branch3x3", 384, 3, 3, 2, false}});
  const ValueId twice = chain(builder, value, path,
                              {{"branch3x3dbl_1", 64},
                               {"branch3x3dbl_2", 96, 3, 3},
                               {"branch3x3dbl_3", 96, 3, 3, 2, false}});
  return builder.concat({by_3x3, twice, halved(builder, value, path + "max_pool")}, path + "cat");
}

ValueId mixed_6(NetworkBuilder& builder, ValueId value, std::int64_t inner,
                const std::string& path) {
  const ValueId by_1x1 = chain(builder, value, path, {{"branch1x1", 192}});
  const ValueId by_7x7 =
      chain(builder, value, path,
            {{"branch7x7_1", inner}, {"branch7x7_2", inner, 1, 7}, {"branch7x7_3", 192, 7, 1}});
  const ValueId twice = chain(builder, value, path,
                              {{"branch7x7dbl_1", inner},
                               {"branch7x7dbl_2", inner, 7, 1},
                               {"branch7x7dbl_3", inner, 1, 7},
                               {"branch7x7dbl_4", inner, 7, 1},
                               {"branch7x7dbl_5", 192, 1, 7}});
  return builder.concat({by_1x1, by_7x7, twice, smoothed(builder, value, 192, path)}, path + "cat");
}

ValueId mixed_7a(NetworkBuilder& builder, ValueId value, const std::string& path) {
  const ValueId by_3x3 =
      chain(builder, value, path, {{"branch3x3_1", 192}, {"branch3x3_2", 320, 3, 3, 2, false}});
  const ValueId by_7x7 = chain(builder, value, path,
                               {{"branch7x7x3_1", 192},
                                {"branch7x7x3_2", 192, 1, 7},
                                {"branch7x7x3_3", 192, 7, 1},
                                {"branch7x7x3_4", 192, 3, 3, 2, false}});
  return builder.concat({by_3x3, by_7x7, halved(builder, value, path + "max_pool")}, path + "cat");
}

// A 1x3 and a 3x1 convolution side by side.
ValueId forked(NetworkBuilder& builder, ValueId value, const std::string& path, const char* name) {
  const std::string row = fmt::format("{}a", name), column = fmt::format("{}b", name);
  return builder.concat({chain(builder, value, path, {{row.c_str(), 384, 1, 3}}),
                         chain(builder, value, path, {{column.c_str(), 384, 3, 1}})},
                        path + name + "_cat");
}

ValueId mixed_7(NetworkBuilder& builder, ValueId value, const std::string& path) {
  const ValueId by_1x1 = chain(builder, value, path, {{"branch1x1", 320}});
  ValueId by_3x3 = chain(builder, value, path, {{"branch3x3_1", 384}});
  by_3x3 = forked(builder, by_3x3, path, "branch3x3_2");
  ValueId twice =
      chain(builder, value, path, {{"branch3x3dbl_1", 448}, {"branch3x3dbl_2", 384, 3, 3}});
  twice = forked(builder, twice, path, "branch3x3dbl_3");
  return builder.concat({by_1x1, by_3x3, twice, smoothed(builder, value, 192, path)}, path + "cat");
}

// A second classifier in the middle of the network, whose loss helps the first layers. In training
// its 5x5 convolution needs images of at least 299x299; evaluation, which only lists the head's
// parameters, takes smaller ones.
void auxiliary(NetworkBuilder& builder, ValueId value, const ModelConfig& config) {
  if (!builder.training()) value = builder.resize(value, 17, 17, "AuxLogits.resize");
  value = builder.average_pool(value, {.kernel = 5, .stride = 3}, "AuxLogits.avg_pool");
  value = chain(builder, value, "AuxLogits.", {{"conv0", 128}, {"conv1", 768, 5, 5, 1, false}});
  value =
      builder.flatten(builder.global_average_pool(value, "AuxLogits.pool"), "AuxLogits.flatten");
  builder.auxiliary(builder.linear(value, config.classes, "AuxLogits.fc", kAuxiliaryInit),
                    kAuxiliaryWeight);
}

ValueId build(NetworkBuilder& builder, ValueId image, const ModelConfig& config) {
  ValueId value = chain(builder, image, {},
                        {{"Conv2d_1a_3x3", 32, 3, 3, 2, false},
                         {"Conv2d_2a_3x3", 32, 3, 3, 1, false},
                         {"Conv2d_2b_3x3", 64, 3, 3}});
  value = halved(builder, value, "maxpool1");
  value =
      chain(builder, value, {}, {{"Conv2d_3b_1x1", 80}, {"Conv2d_4a_3x3", 192, 3, 3, 1, false}});
  value = halved(builder, value, "maxpool2");
  value = mixed_5(builder, value, 32, "Mixed_5b.");
  value = mixed_5(builder, value, 64, "Mixed_5c.");
  value = mixed_5(builder, value, 64, "Mixed_5d.");
  value = mixed_6a(builder, value, "Mixed_6a.");
  value = mixed_6(builder, value, 128, "Mixed_6b.");
  value = mixed_6(builder, value, 160, "Mixed_6c.");
  value = mixed_6(builder, value, 160, "Mixed_6d.");
  value = mixed_6(builder, value, 192, "Mixed_6e.");
  auxiliary(builder, value, config);
  value = mixed_7a(builder, value, "Mixed_7a.");
  value = mixed_7(builder, value, "Mixed_7b.");
  value = mixed_7(builder, value, "Mixed_7c.");
  value = builder.global_average_pool(value, "avgpool");
  value = builder.dropout(value, config.probability("dropout"), "dropout");
  return builder.linear(builder.flatten(value, "flatten"), config.classes, "fc", kInit);
}

}  // namespace

std::vector<ModelInfo> inception_models() {
  return {{.name = "inception_v3",
           .family = "inception",
           .description = "1x7 and 7x1 convolutions, auxiliary head",
           .image = {3, 299, 299, 1000},
           .options = {dropout_option("0.5")},
           .build = build}};
}

}  // namespace ridgeline
