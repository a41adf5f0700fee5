#pragma once

// Parts that several families of networks share.

#include <array>
#include <optional>

#include "models/model.h"

namespace ridgeline {

inline constexpr LayerInit kHeFanOut{.weights = LayerInit::Weights::he_normal_fan_out,
                                     .zero_bias = true};
inline constexpr LayerInit kSmallNormal{
    .weights = LayerInit::Weights::normal, .amount = 0.01, .zero_bias = true};

// A convolution without bias whose padding keeps the image's size, up to the stride; its batch
// norm; an activation where one is named.
struct ConvNorm {
  std::int64_t channels = 0, kernel = 1, stride = 1, groups = 1;
  std::optional<ActivationKind> activation = {};
  NormOptions norm = {};
  LayerInit init = kHeFanOut;
};
struct ConvNormNames {
  std::string conv, norm, activation;
};
ValueId conv_norm(NetworkBuilder& builder, ValueId value, const ConvNorm& layer,
                  const ConvNormNames& names);
// The three are the children 0, 1 and 2 of `path`.
ValueId conv_norm(NetworkBuilder& builder, ValueId value, const ConvNorm& layer,
                  const std::string& path);

// Squeeze and excitation (https://arxiv.org/abs/1709.01507): a factor for each channel of each
// image, computed from the channels' means through `channels` units.
struct SqueezeExcitation {
  std::int64_t channels = 0;
  ActivationKind activation = ActivationKind::relu, gate = ActivationKind::sigmoid;
  LayerInit init = kHeFanOut;
};
ValueId squeeze_excitation(NetworkBuilder& builder, ValueId value, const SqueezeExcitation& layer,
                           const std::string& path);

// The mean of each channel: (N, C, H, W) to (N, C).
ValueId channel_means(NetworkBuilder& builder, ValueId value);

// The multiple of 8 that is nearest, but not more than a tenth below.
[[nodiscard]] std::int64_t multiple_of_8(double channels);

// One model for each row of a family's table, which has a name and a description. REQUIRES: the
// table is static.
template <typename Row, std::size_t count>
[[nodiscard]] std::vector<ModelInfo> family_of(std::string_view family,
                                               const std::array<Row, count>& rows,
                                               ValueId (*build)(NetworkBuilder&, ValueId,
                                                                const ModelConfig&, const Row&),
                                               const std::vector<ModelOption>& options = {}) {
  std::vector<ModelInfo> models;
  for (const Row& row : rows) {
    models.push_back(
        {.name = row.name,
         .family = family,
         .description = row.description,
         .image = kImageNetImage,
         .options = options,
         .build = [build, &row](NetworkBuilder& builder, ValueId image, const ModelConfig& config) {
           return build(builder, image, config, row);
         }});
  }
  return models;
}

[[nodiscard]] constexpr ModelOption dropout_option(std::string_view usual) {
  return {"dropout", usual, "probability of dropping a value before the classifier"};
}
[[nodiscard]] constexpr ModelOption stochastic_depth_option(std::string_view usual) {
  return {"stochastic_depth", usual, "probability of skipping the last block; earlier ones: less"};
}

}  // namespace ridgeline
