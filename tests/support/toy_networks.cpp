#include "support/toy_networks.h"

#include "backends/registry.h"
#include "base/philox.h"

namespace ridgeline {
namespace {

StepSpec spec_for(std::int64_t channels, std::int64_t size, std::int64_t batch) {
  StepSpec spec;
  spec.model.channels = channels;
  spec.model.height = spec.model.width = size;
  spec.model.classes = 5;
  spec.batch = batch;
  spec.optimizer = SgdAttributes{.momentum = 0.9, .weight_decay = 1e-4};
  return spec;
}

ValueId residual(NetworkBuilder& net, ValueId image) {
  const ConvOptions conv3{.kernel_h = 3, .kernel_w = 3, .padding = 1, .bias = false};
  const ConvOptions half{.kernel_h = 3, .kernel_w = 3, .stride = 2, .padding = 1, .bias = false};
  ValueId x = net.relu(net.batch_norm(net.conv2d(image, 12, conv3, "conv1"), "bn1"), "relu1");
  ValueId y = net.relu(net.batch_norm(net.conv2d(x, 12, conv3, "a.conv1"), "a.bn1"), "a.relu1");
  y = net.batch_norm(net.conv2d(y, 12, conv3, "a.conv2"), "a.bn2");
  x = net.relu(net.add(y, x, "a.add"), "a.relu2");
  const ValueId shortcut = net.batch_norm(
      net.conv2d(x, 20, {.stride = 2, .bias = false}, "b.downsample.0"), "b.downsample.1");
  y = net.relu(net.batch_norm(net.conv2d(x, 20, half, "b.conv1"), "b.bn1"), "b.relu1");
  y = net.batch_norm(net.conv2d(y, 20, conv3, "b.conv2"), "b.bn2");
  x = net.relu(net.add(y, shortcut, "b.add"), "b.relu2");
  x = net.flatten(net.global_average_pool(x, "avgpool"), "flatten");
  return net.linear(x, 5, "fc");
}

// Growing concatenations as in a dense block, and one of two branches as in a fire module.
ValueId concatenations(NetworkBuilder& net, ValueId image) {
  const ConvOptions conv3{.kernel_h = 3, .kernel_w = 3, .padding = 1};
  ValueId stem = net.relu(net.conv2d(image, 8, conv3, "conv0"), "relu0");
  std::vector<ValueId> features = {stem};
  for (int i = 1; i <= 3; ++i) {
    const std::string layer = "dense" + std::to_string(i);
    const ValueId joined =
        features.size() == 1 ? features[0] : net.concat(features, layer + ".concat");
    const ValueId normed = net.relu(net.batch_norm(joined, layer + ".norm"), layer + ".relu");
    features.push_back(net.conv2d(normed, 4, conv3, layer + ".conv"));
  }
  ValueId x = net.concat(features, "concat");
  const ValueId squeezed = net.relu(net.conv2d(x, 6, {}, "fire.squeeze"), "fire.relu");
  const ValueId left = net.relu(net.conv2d(squeezed, 7, {}, "fire.left"), "fire.left_relu");
  const ValueId right = net.relu(net.conv2d(squeezed, 9, conv3, "fire.right"), "fire.right_relu");
  x = net.max_pool(net.concat({left, right}, "fire.concat"), {.kernel = 3, .stride = 2}, "pool");
  return net.linear(net.flatten(net.global_average_pool(x, "avgpool"), "flatten"), 5, "fc");
}

ValueId depthwise(NetworkBuilder& net, ValueId image) {
  const ActivationAttributes relu6{.kind = ActivationKind::relu6};
  ValueId x =
      net.conv2d(image, 10, {.kernel_h = 3, .kernel_w = 3, .padding = 1, .bias = false}, "conv1");
  x = net.activation(net.batch_norm(x, "bn1"), relu6, "act1");
  ValueId y = net.activation(net.batch_norm(net.conv2d(x, 30, {.bias = false}, "expand"), "bn2"),
                             relu6, "act2");
  y = net.conv2d(y, 30, {.kernel_h = 3, .kernel_w = 3, .padding = 1, .groups = 30, .bias = false},
                 "dw");
  y = net.activation(net.batch_norm(y, "bn3"), relu6, "act3");
  y = net.batch_norm(net.conv2d(y, 10, {.bias = false}, "project"), "bn4");
  x = net.add(x, y, "add");
  x = net.dropout(net.flatten(net.global_average_pool(x, "avgpool"), "flatten"), 0.2, "dropout");
  return net.linear(x, 5, "fc");
}

// Squeeze-and-excitation with the activations of EfficientNet and MobileNetV3.
ValueId gates(NetworkBuilder& net, ValueId image) {
  const ActivationAttributes silu{.kind = ActivationKind::silu};
  const ActivationAttributes hard_swish{.kind = ActivationKind::hard_swish};
  const ConvOptions conv3{.kernel_h = 3, .kernel_w = 3, .padding = 1, .bias = false};
  ValueId x = net.activation(net.batch_norm(net.conv2d(image, 8, conv3, "conv1"), "bn1"),
                             hard_swish, "act1");
  ValueId y =
      net.activation(net.batch_norm(net.conv2d(x, 18, conv3, "conv2"), "bn2"), silu, "act2");
  ValueId gate = net.global_average_pool(y, "se.pool");
  gate = net.activation(net.conv2d(gate, 4, {}, "se.fc1"), silu, "se.act");
  gate = net.activation(net.conv2d(gate, 18, {}, "se.fc2"), {.kind = ActivationKind::hard_sigmoid},
                        "se.scale");
  y = net.multiply(gate, y, "se");
  y = net.batch_norm(net.conv2d(y, 8, {.bias = false}, "project"), "bn3",
                     {.epsilon = 0.001, .momentum = 0.01});
  x = net.add(net.stochastic_depth(y, 0.3, "drop"), x, "add");
  return net.linear(net.flatten(net.global_average_pool(x, "avgpool"), "flatten"), 5, "fc");
}

// Halves of the channels as in ShuffleNet, with grouped convolutions and an auxiliary head.
ValueId shuffles(NetworkBuilder& net, ValueId image) {
  const ConvOptions conv3{.kernel_h = 3, .kernel_w = 3, .padding = 1};
  ValueId x = net.relu(net.conv2d(image, 12, conv3, "conv1"), "relu1");
  for (const std::string layer : {"a", "b"}) {
    const std::vector<ValueId> halves = net.split(x, {6, 6}, layer + ".split");
    const ConvOptions grouped{.kernel_h = 3, .kernel_w = 3, .padding = 1, .groups = 2};
    const ValueId branch = net.relu(net.conv2d(halves[1], 6, grouped, layer + ".conv"), layer);
    x = net.shuffle(net.concat({halves[0], branch}, layer + ".concat"), 2, layer + ".shuffle");
  }
  const ValueId side = net.flatten(net.global_average_pool(x, "aux.pool"), "aux.flatten");
  net.auxiliary(net.linear(side, 5, "aux.fc"), 0.3);
  x = net.resize(net.pad(x, 1, 0, 0, 2, "pad"), 7, 7, "resize");
  x = net.adaptive_average_pool(net.relu(net.conv2d(x, 9, conv3, "conv2"), "relu2"), 3, 2, "pool");
  return net.linear(net.flatten(x, "flatten"), 5, "fc");
}

// ConvNeXt's block, and a group norm.
ValueId layer_norms(NetworkBuilder& net, ValueId image) {
  ValueId x = net.layer_norm(
      net.conv2d(image, 10, {.kernel_h = 2, .kernel_w = 2, .stride = 2}, "stem.0"), "stem.1", 1e-6);
  ValueId y =
      net.conv2d(x, 10, {.kernel_h = 7, .kernel_w = 7, .padding = 3, .groups = 10}, "block.0");
  y = net.layer_norm(y, "block.2", 1e-6);
  y = net.conv2d(y, 40, {.file_shape = {40, 10}}, "block.3");
  y = net.activation(y, {.kind = ActivationKind::gelu}, "block.4");
  y = net.conv2d(y, 10, {.file_shape = {10, 40}}, "block.5");
  y = net.stochastic_depth(net.layer_scale(y, 0.5, "layer_scale"), 0.2, "drop");
  x = net.group_norm(net.add(y, x, "add"), 5, "norm");
  x = net.activation(x, {.kind = ActivationKind::gelu_tanh}, "act");
  x = net.flatten(net.global_average_pool(x, "avgpool"), "flatten");
  return net.linear(net.layer_norm(x, "head.norm"), 5, "head", {}, false);
}

template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

}  // namespace

std::vector<ToyNetwork> toy_networks() {
  return {{"residual", spec_for(3, 9, 4), residual},
          {"concatenations", spec_for(2, 9, 4), concatenations},
          {"depthwise", spec_for(3, 7, 5), depthwise},
          {"gates", spec_for(3, 7, 5), gates},
          {"shuffles", spec_for(2, 6, 4), shuffles},
          {"layer_norms", spec_for(3, 8, 5), layer_norms}};
}

void fill_state(Session& session, const StepGraph& step, const StepSpec& spec, std::uint64_t seed) {
  for (const Parameter& parameter : step.parameters) {
    const std::vector<double> values = initial_values(parameter, seed);
    const std::vector<float> floats(values.begin(), values.end());
    session.write(parameter.name, spec.dtype == DType::f64 ? bytes_of(values) : bytes_of(floats));
    session.device().synchronize();
  }
  PhiloxSequence random(seed, RandomStream::synthetic, 0);
  const auto rows = static_cast<std::size_t>(spec.batch);
  std::vector<std::uint8_t> pixels(
      rows * static_cast<std::size_t>(spec.model.channels * spec.model.height * spec.model.width));
  for (std::uint8_t& pixel : pixels) pixel = static_cast<std::uint8_t>(random.below(256));
  std::vector<std::int32_t> labels(rows);
  for (std::int32_t& label : labels) {
    label = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(spec.model.classes)));
  }
  session.write(kImages, bytes_of(pixels));
  session.write(kLabels, bytes_of(labels));
  session.device().synchronize();
  session.step_state() = {.learning_rate = 0.05, .seed = seed, .valid_rows = spec.batch};
}

std::vector<double> train_losses(const ToyNetwork& network, const Backend& backend, Device& device,
                                 int steps, std::vector<std::string> disabled_passes) {
  const StepGraph step = training_graph(network.spec, network.build);
  Session session(device);
  const Session::PlanId id =
      session.add(make_plan(step.graph, {.providers = providers_of(backend.name),
                                         .preferred = {},
                                         .disabled_passes = std::move(disabled_passes)}));
  session.prepare();
  fill_state(session, step, network.spec, 1);
  std::vector<double> losses;
  for (int i = 0; i < steps; ++i) {
    session.step_state().optimizer_step = i + 1;
    session.step_state().random_step = i;
    session.run(id);
    losses.push_back(session.read_value(id, step.loss)[0]);
  }
  return losses;
}

}  // namespace ridgeline
