// The convolutional network of the backends study: two blocks of convolution, activation and 2x2
// max pooling, then two dense layers.

#include "base/error.h"
#include "models/model.h"

namespace ridgeline {
namespace {

ValueId build(NetworkBuilder& builder, ValueId image, const ModelConfig& config) {
  const std::vector<std::int64_t> filters = config.numbers("filters");
  const std::int64_t kernel = config.number("kernel"), hidden = config.number("hidden");
  const std::int64_t blocks = config.number("blocks");
  if (filters.size() != 2 || filters[0] < 1 || filters[1] < 1) {
    bad_input("mnist_cnn: setting filters needs two numbers above 0, such as 8,16");
  }
  if (kernel < 1 || hidden < 1) {
    bad_input("mnist_cnn: options kernel and hidden must be at least 1");
  }
  const ActivationAttributes activation = config.activation("activation");
  ValueId value = image;
  for (std::size_t i = 0; i < filters.size(); ++i) {
    const std::string number = fmt::format("{}", i + 1);
    value = builder.conv2d(value, filters[i], {.kernel_h = kernel, .kernel_w = kernel},
                           "conv" + number);
    value = builder.activation(value, activation, "act" + number);
    value = builder.max_pool(value, {}, "pool" + number);
  }
  // Further blocks keep the image size: same padding, no pooling.
  if (blocks > 0 && kernel % 2 == 0) {
    bad_input("mnist_cnn: extra blocks need an odd kernel size, not {}", kernel);
  }
  for (std::int64_t i = 0; i < blocks; ++i) {
    const std::string number = fmt::format("{}", i + 3);
    value = builder.conv2d(value, filters[1],
                           {.kernel_h = kernel, .kernel_w = kernel, .padding = kernel / 2},
                           "conv" + number);
    value = builder.activation(value, activation, "act" + number);
  }
  value = builder.flatten(value, "flatten");
  value = builder.linear(value, hidden, "fc1");
  value = builder.activation(value, activation, "act_fc1");
  return builder.linear(value, config.classes, "fc2");
}

}  // namespace

std::vector<ModelInfo> mnist_cnn_models() {
  return {{.name = "mnist_cnn",
           .family = "mnist_cnn",
           .description = "conv 8, pool, conv 16, pool, dense 128, dense 10 (study 5)",
           .options = {{"filters", "8,16", "filters of the two convolutions"},
                       {"kernel", "3", "height and width of the convolutions' kernels"},
                       {"hidden", "128", "units of the dense hidden layer"},
                       {"blocks", "0", "extra blocks of convolution + activation, same size"},
                       {"activation", "relu", "relu, relu6, leaky_relu, sigmoid, tanh or silu"}},
           .build = build}};
}

}  // namespace ridgeline
