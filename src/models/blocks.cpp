#include "models/blocks.h"

#include <algorithm>

namespace ridgeline {

ValueId conv_norm(NetworkBuilder& builder, ValueId value, const ConvNorm& layer,
                  const ConvNormNames& names) {
  value = builder.conv2d(value, layer.channels,
                         {.kernel_h = layer.kernel,
                          .kernel_w = layer.kernel,
                          .stride = layer.stride,
                          .padding = layer.kernel / 2,
                          .groups = layer.groups,
                          .bias = false,
                          .init = layer.init},
                         names.conv);
  value = builder.batch_norm(value, names.norm, layer.norm);
  if (!layer.activation) return value;
  return builder.activation(value, {.kind = *layer.activation}, names.activation);
}

ValueId conv_norm(NetworkBuilder& builder, ValueId value, const ConvNorm& layer,
                  const std::string& path) {
  return conv_norm(builder, value, layer, {path + ".0", path + ".1", path + ".2"});
}

ValueId squeeze_excitation(NetworkBuilder& builder, ValueId value, const SqueezeExcitation& layer,
                           const std::string& path) {
  const std::int64_t channels = builder.shape(value)[1];
  ValueId factors = builder.global_average_pool(value, path + ".avgpool");
  factors = builder.conv2d(factors, layer.channels, {.init = layer.init}, path + ".fc1");
  factors = builder.activation(factors, {.kind = layer.activation}, path + ".activation");
  factors = builder.conv2d(factors, channels, {.init = layer.init}, path + ".fc2");
  factors = builder.activation(factors, {.kind = layer.gate}, path + ".scale_activation");
  return builder.multiply(value, factors, path + ".multiply");
}

ValueId channel_means(NetworkBuilder& builder, ValueId value) {
  return builder.flatten(builder.global_average_pool(value, "avgpool"), "flatten");
}

std::int64_t multiple_of_8(double channels) {
  const std::int64_t rounded =
      std::max<std::int64_t>(8, static_cast<std::int64_t>(channels + 4.0) / 8 * 8);
  return static_cast<double>(rounded) < 0.9 * channels ? rounded + 8 : rounded;
}

}  // namespace ridgeline
