// A chain of dense layers; with the defaults the 784-10-10 network of the from-scratch study.

#include "base/error.h"
#include "models/model.h"

namespace ridgeline {
namespace {

ValueId build(NetworkBuilder& builder, ValueId image, const ModelConfig& config) {
  std::vector<std::int64_t> widths = config.numbers("hidden");
  const std::int64_t depth = config.number("depth");
  if (depth < 1) bad_input("mlp: option depth must be at least 1");
  // One width serves all layers, several are given one by one.
  if (widths.size() == 1) widths.assign(static_cast<std::size_t>(depth), widths[0]);
  const ActivationAttributes activation = config.activation("activation");
  ValueId value = builder.flatten(image, "flatten");
  for (std::size_t i = 0; i < widths.size(); ++i) {
    if (widths[i] < 1) bad_input("mlp: a hidden layer needs at least one unit");
    value = builder.linear(value, widths[i], fmt::format("fc{}", i + 1));
    value = builder.activation(value, activation, fmt::format("act{}", i + 1));
  }
  return builder.linear(value, config.classes, fmt::format("fc{}", widths.size() + 1));
}

}  // namespace

std::vector<ModelInfo> mlp_models() {
  return {{.name = "mlp",
           .family = "mlp",
           .description = "dense layers, 784-10-10 by default (study 2)",
           .options = {{"hidden", "10", "units of the hidden layers: one number or a list"},
                       {"depth", "1", "hidden layers, when `hidden` is one number"},
                       {"activation", "relu", "relu, relu6, leaky_relu, sigmoid, tanh or silu"}},
           .build = build}};
}

}  // namespace ridgeline
